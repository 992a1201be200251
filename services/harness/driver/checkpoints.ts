import { setImmediate } from "node:timers/promises";
import type { Logger } from "../../common/log/create-logger.ts";
import { CHECKPOINT_FORMAT, parseState, prepareTurns, serializeState } from "../domain/checkpoint.ts";
import type { SessionState } from "../domain/session-state.ts";
import type { EventLog, HeldLease, LogStart } from "../ports/event-log.ts";
import { packState, unpackState } from "./checkpoint-data.ts";

/** A log that is shorter is read faster than its checkpoint. */
const WORTH_EVENTS = 200;
/** The session service takes no more. */
const MAX_BYTES = 3 * 1024 * 1024;
/** Turns written down at a time: other sessions of this process go on in between. */
const SLICE_TURNS = 200;

/**
 * The newest fold that is kept: what came with the lease, or else what is read now; undefined when there is none that can be
 * used, whatever the reason.
 */
export async function loadCheckpoint(
  port: EventLog,
  lease: HeldLease,
  signal: AbortSignal,
  start?: LogStart,
): Promise<SessionState | undefined> {
  if (lease.headPosition < BigInt(WORTH_EVENTS)) return undefined;
  try {
    const stored = start
      ? start.checkpoint
      : await port.readCheckpoint(lease.sessionId, CHECKPOINT_FORMAT, signal);
    if (!stored || stored.position > lease.headPosition) return undefined;
    const state = parseState(await unpackState(stored.data));
    return state?.position === stored.position ? state : undefined;
  } catch {
    // A cache: whatever is wrong with it, the log has everything.
    return undefined;
  }
}

/** Keeps folds of one session while nothing else is to do, so that the next brain need not read the whole log. */
export class Checkpoints {
  readonly #port: EventLog;
  readonly #lease: HeldLease;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  #last: bigint | undefined;
  #summaryAt: bigint | undefined;
  #isBusy = false;

  constructor(port: EventLog, lease: HeldLease, logger: Logger, signal: AbortSignal) {
    this.#port = port;
    this.#lease = lease;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** Says what a checkpoint that was loaded stands at; 0 = none was. */
  startFrom(position: bigint, state: SessionState): void {
    this.#last = position;
    this.#summaryAt = state.summary?.position;
  }

  /** Keeps the state if it is worth it. Never waits and never fails. */
  offer(state: SessionState): void {
    if (this.#isBusy || state.position < BigInt(WORTH_EVENTS)) return;
    const since = state.position - (this.#last ?? 0n);
    // A state that grows is written down less often, so that all of it together stays cheap.
    const worth = BigInt(Math.max(WORTH_EVENTS, Math.floor(state.turns.length / 20)));
    const isCompacted = state.summary?.position !== this.#summaryAt;
    if (since < worth && !isCompacted) return;
    this.#isBusy = true;
    this.#keep(state)
      .catch((error: unknown) => this.#logger.debug({ err: error }, "no checkpoint was kept"))
      .finally(() => {
        this.#isBusy = false;
      });
  }

  async #keep(state: SessionState): Promise<void> {
    for (let at = 0; at < state.turns.length; at += SLICE_TURNS) {
      if (at > 0) await setImmediate(undefined, { signal: this.#signal });
      prepareTurns(state, at, at + SLICE_TURNS);
    }
    // The log may have gone on meanwhile: what is kept is of this moment.
    const { position } = state;
    this.#last = position;
    this.#summaryAt = state.summary?.position;
    const written = serializeState(state);
    if (!written) return;
    const data = await packState(written);
    if (data.length > MAX_BYTES) return;
    await this.#port.writeCheckpoint(this.#lease, CHECKPOINT_FORMAT, { position, data }, this.#signal);
  }
}
