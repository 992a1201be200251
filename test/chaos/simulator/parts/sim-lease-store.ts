import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { Lease } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { leaseHeld, sessionEnded, sessionNotFound } from "../../../../services/session/domain/errors.ts";
import type {
  Given,
  Heartbeat,
  Holder,
  LeaseStore,
  LeaseWish,
} from "../../../../services/session/ports/lease-store.ts";
import { encodeNewEvent } from "../../../../services/session/store/event-codec.ts";
import { toLease } from "../../../../services/session/store/session-row.ts";
import { appendRow } from "./append-row.ts";
import type { SessionRow, SimDatabase } from "./sim-database.ts";

const MAX_ATTEMPTS = 5;
const ACTOR = { role: 1, subject: "spiffe://ganglion.local/session/session-1" };

/** Leases over the simulated database, by its clock alone. */
export class SimLeaseStore implements LeaseStore {
  readonly #database: SimDatabase;
  readonly #ttlMs: number;

  constructor(database: SimDatabase, ttlMs: number) {
    this.#database = database;
    this.#ttlMs = ttlMs;
  }

  async heartbeat({ owner, bootId }: Heartbeat): Promise<string[]> {
    const { beats, time, sessions } = this.#database;
    await this.#database.step();
    const before = beats.get(owner)?.bootId;
    beats.set(owner, { bootId, at: time.now });
    if (before === bootId) return [];
    await this.#database.step();
    const freed = [...sessions.values()].filter((row) => row.owner === owner && row.ownerBoot !== bootId);
    for (const row of freed) {
      free(row);
      this.#database.raiseFence(row.sessionId, row.epoch + 1n, false);
    }
    return freed.map(({ sessionId }) => sessionId);
  }

  async acquire(holder: Holder, { sessionId, requestId, onFound }: LeaseWish): Promise<Given | undefined> {
    await this.#database.step();
    const beat = this.#database.beats.get(holder.owner);
    if (beat?.bootId !== holder.bootId || !this.#isYoung(beat.at)) throw heartbeatRequired();
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      await this.#database.step();
      const given = this.#given(holder, sessionId, requestId);
      if (given) return { lease: this.#leaseOf(given) };
      const row = sessionId === null ? this.#findRunnable() : this.#named(holder, sessionId);
      if (!row) return undefined;
      const { epoch, owner } = row;
      onFound?.(row.sessionId);
      await this.#database.step();
      const isAsSeen = row.epoch === epoch && row.owner === owner && row.status !== "terminated";
      const isWanted = sessionId === null ? this.#isFree(row) : this.#named(holder, sessionId) === row;
      // A unique index: a request that comes twice at once is given one session.
      const isGiven = this.#given(holder, null, requestId) !== undefined;
      if (!isAsSeen || !isWanted || (isGiven && row.leaseRequest !== requestId)) continue;
      const lease = this.#take(row, holder, requestId);
      return { lease, acquired: this.#database.eventsOf(row.sessionId).at(-1) };
    }
    return undefined;
  }

  async release(
    owner: string,
    sessionId: string,
    epoch: bigint,
    settledPosition: bigint | null,
  ): Promise<{ isRunnable: boolean } | undefined> {
    await this.#database.step();
    const row = this.#database.sessions.get(sessionId);
    if (!row) return undefined;
    if (row.owner !== owner || row.epoch !== epoch) return { isRunnable: false };
    free(row);
    const isSettled = row.status === "idle" && settledPosition === BigInt(row.events.length);
    row.runnable = row.runnable && !isSettled;
    this.#database.raiseFence(sessionId, epoch + 1n, false);
    return { isRunnable: row.runnable };
  }

  async get(sessionId: string): Promise<Lease | undefined> {
    await this.#database.step();
    const row = this.#database.sessions.get(sessionId);
    return row && this.#leaseOf(row);
  }

  async countRunnable(cap: number): Promise<number> {
    await this.#database.step();
    return Math.min(cap, [...this.#database.sessions.values()].filter((row) => this.#isFree(row)).length);
  }

  /** What the same request of this boot was given and still holds. */
  #given(holder: Holder, sessionId: string | null, requestId: string | null): SessionRow | undefined {
    return [...this.#database.sessions.values()].find(
      (row) =>
        requestId !== null &&
        row.leaseRequest === requestId &&
        row.owner === holder.owner &&
        row.ownerBoot === holder.bootId &&
        (sessionId === null || row.sessionId === sessionId) &&
        row.status !== "terminated",
    );
  }

  #isYoung(at: number): boolean {
    return at > this.#database.time.now - this.#ttlMs;
  }

  #isHeldAlive(row: SessionRow): boolean {
    if (row.owner === null || !this.#database.rules.respectsLeases) return false;
    const beat = this.#database.beats.get(row.owner);
    return beat !== undefined && beat.bootId === row.ownerBoot && this.#isYoung(beat.at);
  }

  #isFree(row: SessionRow): boolean {
    return row.runnable && !this.#isHeldAlive(row);
  }

  #findRunnable(): SessionRow | undefined {
    const free = [...this.#database.sessions.values()].filter((row) => this.#isFree(row));
    return free.sort((a, b) => a.runnableAt - b.runnableAt)[0];
  }

  #named(holder: Holder, sessionId: string): SessionRow {
    const row = this.#database.sessions.get(sessionId);
    if (!row) throw sessionNotFound(sessionId);
    if (row.status === "terminated") throw sessionEnded();
    const isOwn = row.owner === holder.owner && row.ownerBoot === holder.bootId;
    if (this.#isHeldAlive(row) && !isOwn) throw leaseHeld(row.owner ?? "", row.epoch);
    return row;
  }

  #take(row: SessionRow, holder: Holder, requestId: string | null): Lease {
    const isTakeover = row.owner !== null;
    const { beats, time, takes } = this.#database;
    const beat = beats.get(row.owner ?? "");
    const isFromLiving = beat?.bootId === row.ownerBoot && time.now - (beat?.at ?? 0) < this.#ttlMs;
    const isOther = row.owner !== holder.owner || row.ownerBoot !== holder.bootId;
    takes.push({ sessionId: row.sessionId, isFromLiving: isFromLiving && isOther, taker: holder.owner });
    row.epoch += 1n;
    row.owner = holder.owner;
    row.ownerBoot = holder.bootId;
    row.leaseRequest = requestId;
    const body = {
      $case: "ganglionLeaseAcquired" as const,
      value: { owner: holder.owner, epoch: row.epoch, isTakeover },
    };
    const event = encodeNewEvent(Event.fromPartial({ body }), "ganglion.lease_acquired");
    appendRow(this.#database, {
      sessionId: row.sessionId,
      scope: null,
      lease: null,
      expectedPosition: null,
      actor: ACTOR,
      events: [event],
    });
    this.#database.raiseFence(row.sessionId, row.epoch, false);
    return this.#leaseOf(row);
  }

  #leaseOf(row: SessionRow): Lease {
    return toLease({
      session_id: row.sessionId,
      workspace_id: row.workspaceId,
      epoch: row.epoch,
      owner: row.owner,
      head: BigInt(row.events.length),
      alive: this.#isHeldAlive(row),
      status: row.status,
    });
  }
}

function free(row: SessionRow): void {
  row.owner = null;
  row.ownerBoot = null;
}

function heartbeatRequired(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "HEARTBEAT_REQUIRED",
    message: "the instance has no live heartbeat of this boot; send HarnessHeartbeat first",
  });
}
