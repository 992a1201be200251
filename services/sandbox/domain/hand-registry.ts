import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import { type CloneFailure, cloneRepositories, type WantedRepository } from "./clone-repositories.ts";
import type { ExecutionJournal } from "./execution-journal.ts";
import {
  type DrivenHand,
  DriverUnavailableError,
  type HandDriver,
  type HandResources,
} from "./hand-driver.ts";
import type { WaysOut } from "./way-out.ts";

/** Where a hand stands. */
export type HandState = "READY" | "LOST";

/** A hand as the registry knows it. */
export type HandRecord = {
  readonly id: string;
  readonly sessionId: string;
  readonly createdAt: number;
  state: HandState;
  /** Why it is lost. */
  lostReason: string;
  lastUsedAt: number;
  /** Calls that run in it now. */
  callCount: number;
  driven: DrivenHand | undefined;
  /** Repositories that it was to have and has not. */
  missing: readonly CloneFailure[];
};

/** What a hand is made for and with. */
export type HandRequest = {
  sessionId: string;
  requestId: string;
  resources: HandResources;
  repositories: readonly WantedRepository[];
};

/** What the registry works with. */
export type HandRegistryOptions = {
  driver: HandDriver;
  journal: ExecutionJournal;
  /** Absent where no hand may reach anything. */
  waysOut?: WaysOut | undefined;
  maxHands: number;
  /** A hand that ran nothing for so long is killed. */
  idleTtlMs: number;
  now: () => number;
  /** Told of each hand that is gone, and of what went wrong. For the host's log. */
  onEvent: (event: { message: string; handId: string; sessionId: string; cause?: unknown }) => void;
};

const MAX_LOST_KEPT = 1_000;

/** HandRegistry knows the hands of this host, makes them and ends them. */
export class HandRegistry {
  readonly #options: HandRegistryOptions;
  readonly #hands = new Map<string, HandRecord>();
  /** Hands by session and request id, from the first call on, so that a repeated one waits for the same hand. */
  readonly #requests = new Map<string, Promise<HandRecord>>();
  #beingMade = 0;
  #isClosed = false;

  constructor(options: HandRegistryOptions) {
    this.#options = options;
    // The hands of a dead predecessor died with it; who still names one is told so (case B078).
    for (const { handId, sessionId, createdAt } of options.journal.recordedHands().slice(-MAX_LOST_KEPT)) {
      this.#hands.set(handId, {
        ...{ id: handId, sessionId, createdAt, lastUsedAt: createdAt, callCount: 0 },
        ...{ state: "LOST", lostReason: "the sandbox service was restarted" },
        ...{ driven: undefined, missing: [] },
      });
    }
  }

  /** Number of living hands. */
  get liveCount(): number {
    return this.#live().length;
  }

  /** provision makes a hand, or answers with the one that the same request made while that lives. */
  async provision(request: HandRequest): Promise<HandRecord> {
    const name = `${request.sessionId}\n${request.requestId}`;
    const earlier = this.#requests.get(name);
    if (earlier !== undefined) {
      const record = await earlier;
      if (record.state === "READY") return record;
    }
    const again = this.#requests.get(name);
    // Another repetition may have started a new one meanwhile.
    if (again !== undefined && again !== earlier) return again;
    const making = this.#make(request);
    this.#requests.set(name, making);
    const forget = () => {
      if (this.#requests.get(name) === making) this.#requests.delete(name);
    };
    making.then((record) => record.driven?.ended.then(forget), forget);
    return making;
  }

  /** get returns a session's hand, dead or alive; another session's looks like none. */
  get(sessionId: string, handId: string): HandRecord {
    const record = this.#hands.get(handId);
    if (record && record.sessionId === sessionId) return record;
    throw new GanglionError({
      code: "NOT_FOUND",
      reason: "HAND_NOT_FOUND",
      message: "no such hand",
      metadata: { hand_id: handId },
    });
  }

  /** list returns the hands of a session, or all, oldest first. */
  list(sessionId?: string): HandRecord[] {
    const all = [...this.#hands.values()].filter(
      (hand) => sessionId === undefined || hand.sessionId === sessionId,
    );
    return all.sort((a, b) => a.createdAt - b.createdAt || a.id.localeCompare(b.id));
  }

  /** terminate kills a hand. One that is gone, or not the session's, is left as it is. */
  async terminate(handId: string, sessionId?: string): Promise<void> {
    const record = this.#hands.get(handId);
    if (!record || (sessionId !== undefined && record.sessionId !== sessionId)) return;
    await this.#end(record, "it was terminated");
  }

  /** lose marks a hand that failed a call as lost and resolves when nothing in it runs any more (case B078). */
  async lose(record: HandRecord, reason: string): Promise<void> {
    const ended = record.driven?.ended;
    this.#end(record, reason).catch(() => undefined);
    await ended;
  }

  /** reapIdle kills hands that nobody used for a while (case B070). */
  async reapIdle(): Promise<void> {
    const before = this.#options.now() - this.#options.idleTtlMs;
    const idle = this.#live().filter((hand) => hand.callCount === 0 && hand.lastUsedAt < before);
    await Promise.all(idle.map((hand) => this.#end(hand, "it was idle for too long")));
  }

  /**
   * endHandsOf kills the hands of sessions that have ended, with all that was left running in them (case A094). A session
   * that cannot be asked about keeps its hands until the next look.
   */
  async endHandsOf(hasEnded: (sessionId: string) => Promise<boolean>): Promise<void> {
    const sessionIds = [...new Set(this.#live().map((hand) => hand.sessionId))];
    await Promise.all(
      sessionIds.map(async (sessionId) => {
        if (!(await hasEnded(sessionId))) return;
        const hands = this.#live().filter((hand) => hand.sessionId === sessionId);
        await Promise.all(hands.map((hand) => this.#end(hand, "its session has ended")));
      }),
    );
  }

  /** close kills every hand and makes no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const endAll = () =>
      Promise.all(this.#live().map((hand) => this.#end(hand, "the sandbox service stopped")));
    // Those that get their repositories now need not get all of them.
    await endAll();
    await Promise.allSettled(this.#requests.values());
    await endAll();
  }

  async #make(request: HandRequest): Promise<HandRecord> {
    const { maxHands } = this.#options;
    const { sessionId, repositories } = request;
    if (this.#isClosed || this.#live().length + this.#beingMade >= maxHands) throw handLimit(maxHands);
    const handId = newId("hand");
    try {
      const [record, driven] = await this.#launch(handId, request);
      if (repositories.length > 0) await this.#furnish(record, driven, repositories);
      return record;
    } catch (cause) {
      this.#options.onEvent({ message: "a hand could not be made", handId, sessionId, cause });
      throw provisionFailed(cause);
    }
  }

  async #launch(id: string, { sessionId, resources }: HandRequest): Promise<[HandRecord, DrivenHand]> {
    const { driver, journal, waysOut, now } = this.#options;
    this.#beingMade += 1;
    try {
      const wayOut = await waysOut?.find({ sessionId, handId: id });
      const driven = await driver.provision(id, resources, wayOut);
      const createdAt = now();
      try {
        await journal.recordHand({ handId: id, sessionId, createdAt });
      } catch (error) {
        await driven.destroy();
        throw error;
      }
      return [this.#admit({ id, sessionId, createdAt, driven }), driven];
    } finally {
      this.#beingMade -= 1;
    }
  }

  async #furnish(
    record: HandRecord,
    driven: DrivenHand,
    repositories: readonly WantedRepository[],
  ): Promise<void> {
    record.callCount += 1;
    try {
      record.missing = await cloneRepositories(
        (call, signal) => driven.run(call, signal),
        repositories,
        this.#options.now,
      );
    } finally {
      record.callCount -= 1;
      record.lastUsedAt = this.#options.now();
    }
  }

  #admit(made: { id: string; sessionId: string; createdAt: number; driven: DrivenHand }): HandRecord {
    const record: HandRecord = {
      ...made,
      ...{ state: "READY", lostReason: "", lastUsedAt: made.createdAt, callCount: 0, missing: [] },
    };
    this.#hands.set(record.id, record);
    // A hand that dies by itself is never READY again, whoever notices first (case B078).
    made.driven.ended.then((reason) => this.#end(record, reason)).catch(() => undefined);
    this.#forgetOldest();
    return record;
  }

  async #end(record: HandRecord, reason: string): Promise<void> {
    const { id: handId, sessionId } = record;
    if (record.state === "READY") {
      record.state = "LOST";
      record.lostReason = reason;
      this.#options.onEvent({ message: `hand lost: ${reason}`, handId, sessionId });
    }
    try {
      await record.driven?.destroy();
    } catch (cause) {
      this.#options.onEvent({ message: "a hand's remains could not be removed", handId, sessionId, cause });
    }
  }

  #live(): HandRecord[] {
    return [...this.#hands.values()].filter((hand) => hand.state === "READY");
  }

  #forgetOldest(): void {
    const lost = [...this.#hands.values()].filter((hand) => hand.state === "LOST");
    for (const hand of lost.slice(0, Math.max(0, lost.length - MAX_LOST_KEPT))) this.#hands.delete(hand.id);
  }
}

function handLimit(maxHands: number): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "HAND_LIMIT",
    message: `this host takes no more than ${maxHands} hands`,
    retryAfterMs: 1_000,
  });
}

function provisionFailed(cause: unknown): GanglionError {
  if (GanglionError.is(cause)) return cause;
  if (cause instanceof DriverUnavailableError) {
    return new GanglionError({
      code: "FAILED_PRECONDITION",
      reason: "DRIVER_UNAVAILABLE",
      message: "this host cannot isolate a hand",
      metadata: { missing: cause.missing },
      cause,
    });
  }
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "PROVISION_FAILED",
    message: "the hand could not be made",
    retryAfterMs: 500,
    cause,
  });
}
