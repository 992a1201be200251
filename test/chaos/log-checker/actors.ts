import { setTimeout as pause } from "node:timers/promises";
import {
  GetEventsRequest,
  SortOrder,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type Caller, event, userMessage } from "../../contract/session/session-kit.ts";
import type { Random } from "../../kit/random.ts";
import type { Outcome } from "./history.ts";
import { isLost, type Recorder, seenOf } from "./recorder.ts";

const TIMEOUT_MS = 3_000;

/** What every actor works with. */
export interface Stage {
  readonly name: string;
  readonly recorder: Recorder;
  readonly caller: Caller;
  readonly random: Random;
  /** Fires when no new work is to be begun. */
  readonly over: AbortSignal;
  /** Never leaves open what became of an append. */
  readonly isStubborn?: boolean;
}

/** Appends until it is over: batches, with and without a wanted head, repeated at random and after every lost call. */
export async function appender(stage: Stage): Promise<void> {
  const { recorder, caller, random, over, name } = stage;
  let head = 1;
  let before: Event[] = [];
  for (let n = 0; !over.aborted; n++) {
    const isRepeated = before.length > 0 && random.chance(0.15);
    const fresh = Array.from({ length: random.integer(1, 5) }, (_, index) =>
      userMessage("x".repeat(random.integer(0, 399)), `sevt_${name}_${n}_${index}`),
    );
    const events = isRepeated ? before : fresh;
    const more = !isRepeated && random.chance(0.4) ? { expectedPosition: BigInt(head) } : {};
    const outcome = await insist(stage, () => recorder.append(caller, events, more, TIMEOUT_MS));
    if (outcome.kind === "acknowledged")
      head = Math.max(head, ...outcome.stored.map(({ position }) => position));
    else head = await headOf(stage, head);
    if (outcome.kind === "acknowledged") before = events;
    if (random.chance(0.3)) await pause(random.integer(0, 29));
  }
}

// The same again until somebody says what became of it; now and then it is left unknown.
async function insist(
  { random, over, isStubborn }: Stage,
  attempt: () => Promise<Outcome>,
): Promise<Outcome> {
  for (;;) {
    const outcome = await attempt();
    if (outcome.kind !== "ambiguous" || (!isStubborn && random.chance(0.05))) return outcome;
    await pause(over.aborted ? 50 : random.integer(20, 219));
  }
}

async function headOf({ recorder, caller }: Stage, known: number): Promise<number> {
  try {
    const { session } = await caller.session.getSession(
      { sessionId: recorder.sessionId },
      { timeoutMs: TIMEOUT_MS },
    );
    return Number(session?.headPosition ?? known);
  } catch (error) {
    if (!isLost(error)) throw error;
    return known;
  }
}

/**
 * Two harnesses that take the session from each other: each appends under its lease, falls silent for longer than its
 * heartbeat counts, and then goes on as if nothing had happened.
 */
export async function brain(stage: Stage, ttlMs: number): Promise<void> {
  const { recorder, caller, random, over, name } = stage;
  const bootId = `boot-of-${name}-00000001`;
  for (let n = 0; !over.aborted; ) {
    const epoch = await lease(stage, bootId);
    if (epoch === undefined) {
      await pause(ttlMs / 4);
      continue;
    }
    for (let burst = random.integer(1, 8); burst > 0 && !over.aborted; burst--, n++) {
      const events = Array.from({ length: random.integer(1, 3) }, (_, index) =>
        note(`sevt_${name}_${n}_${index}`),
      );
      await insist(stage, () => recorder.append(caller, events, { epoch }, TIMEOUT_MS));
    }
    // The brain does not know how long it slept.
    await pause(random.chance(0.5) ? ttlMs * 2 : random.integer(0, 19));
    const late = note(`sevt_${name}_${n++}_late`);
    await insist(stage, () => recorder.append(caller, [late], { epoch }, TIMEOUT_MS));
  }
}

async function lease({ recorder, caller }: Stage, bootId: string): Promise<bigint | undefined> {
  const { sessionId } = recorder;
  const options = { timeoutMs: TIMEOUT_MS };
  try {
    await caller.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false }, options);
    const { lease: got } = await caller.session.acquireLease({ sessionId, bootId }, options);
    if (!got) return undefined;
    recorder.taken.push({ epoch: Number(got.epoch), ended: performance.now() });
    return got.epoch;
  } catch (error) {
    const { reason } = error as { reason?: string };
    if (isLost(error) || reason === "LEASE_HELD" || reason === "HEARTBEAT_REQUIRED") return undefined;
    throw error;
  }
}

function note(id: string): Event {
  const data = { $case: "json" as const, value: Buffer.from('{"type":"text","text":"note"}') };
  const block = { type: "text", data };
  return event(
    { $case: "agentMessage", value: { block, modelRequestStartId: "sevt_start", blockIndex: 0 } },
    id,
  );
}

/** Watches from a position on, leaves at random and comes back where it was, until it has seen the whole log. */
export async function watcher(stage: Stage, whole: Promise<number>): Promise<void> {
  const { recorder, caller, random, over, name } = stage;
  const events: ReturnType<typeof seenOf>[] = [];
  const watched = { name, after: 0, events };
  recorder.watched.push(watched);
  let position = 0n;
  let last = Number.POSITIVE_INFINITY;
  whole.then(
    (head) => {
      last = head;
    },
    () => {},
  );
  while (Number(position) < last) {
    const leave = new AbortController();
    // A watcher that is quiet looks from time to time whether it is at the end.
    const timer = setTimeout(() => leave.abort(), over.aborted ? 500 : random.integer(200, 2_199));
    try {
      const request = WatchEventsRequest.fromPartial({
        sessionId: recorder.sessionId,
        afterPosition: position,
      });
      for await (const answer of caller.session.watchEvents(request, { signal: leave.signal })) {
        if (answer.message?.$case === "event") events.push(seenOf(answer.message.value));
        position = answer.position;
        if (Number(position) >= last) break;
        if (!over.aborted && random.chance(0.01)) break;
      }
    } catch (error) {
      if (!isLost(error)) throw error;
      await pause(random.integer(20, 119));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Reads random slices in both directions. */
export async function reader({ recorder, caller, random, over }: Stage): Promise<void> {
  let head = 1;
  while (!over.aborted) {
    const after = random.integer(0, head);
    const before = random.chance(0.5) ? 0 : after + random.integer(1, 60);
    const isDescending = random.chance(0.5);
    const request = GetEventsRequest.fromPartial({
      sessionId: recorder.sessionId,
      afterPosition: BigInt(after),
      beforePosition: BigInt(before),
      limit: random.integer(1, 80),
      order: isDescending ? SortOrder.SORT_ORDER_DESC : SortOrder.SORT_ORDER_ASC,
      ...(random.chance(0.2) ? { maxBytes: 4_000 } : {}),
    });
    const begun = performance.now();
    try {
      const { events, headPosition, hasMore } = await caller.session.getEvents(request, {
        timeoutMs: TIMEOUT_MS,
      });
      head = Number(headPosition);
      recorder.reads.push({ after, before, isDescending, events: events.map(seenOf), head, hasMore, begun });
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    await pause(random.integer(5, 44));
  }
}
