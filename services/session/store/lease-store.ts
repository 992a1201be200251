import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Lease } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Append, NewEvent } from "../domain/append.ts";
import { leaseHeld, sessionEnded, sessionNotFound } from "../domain/errors.ts";
import type { Given, Heartbeat, Holder, LeaseStore, LeaseWish } from "../ports/lease-store.ts";
import type { Connection, Database, Row } from "./database.ts";
import { freshEvent } from "./event-codec.ts";
import { raiseFence, withFence } from "./fence.ts";
import * as sql from "./lease-statements.ts";
import { isUniqueViolation, mapPgError } from "./pg-error.ts";
import { toLease } from "./session-row.ts";

const MAX_ATTEMPTS = 5;
// Whoever comes second at the first of them tries another one.
const CANDIDATES = 16;

/** A holder and the request with which it asks. */
interface Taker extends Holder {
  readonly requestId: string | null;
}

/** What the store needs to write ganglion.lease_acquired. */
export interface LeaseEvents {
  readonly actor: Append["actor"];
  readonly acquired: (owner: string, epoch: bigint, isTakeover: boolean) => NewEvent;
}

/** Leases and heartbeats in PostgreSQL. */
export class PgLeaseStore implements LeaseStore {
  readonly #database: Database;
  readonly #ttlMs: number;
  readonly #events: LeaseEvents;

  constructor(database: Database, ttlMs: number, events: LeaseEvents) {
    this.#database = database;
    this.#ttlMs = ttlMs;
    this.#events = events;
  }

  async heartbeat(heartbeat: Heartbeat, signal?: AbortSignal): Promise<string[]> {
    const { owner, bootId, activeSessions, isDraining } = heartbeat;
    const [row] = await this.#database.run(sql.BEAT, [owner, bootId, activeSessions, isDraining], signal);
    // Another run of the instance held what it held; nobody else can know that it is gone.
    if (row?.previous_boot_id === bootId) return [];
    return this.#transaction(signal, async (connection) => {
      const rows = await connection.run(sql.FREE_OTHER_BOOTS, [owner, bootId]);
      for (const freed of rows) await raiseFence(connection, freed.session_id, freed.epoch + 1n, false);
      return rows.map((freed) => freed.session_id as string);
    });
  }

  async acquire(
    holder: Holder,
    { sessionId, requestId, onFound }: LeaseWish,
    signal?: AbortSignal,
  ): Promise<Given | undefined> {
    const taker = { ...holder, requestId };
    const asked = [holder.owner, holder.bootId, requestId, sessionId, this.#ttlMs, CANDIDATES];
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const rows = await this.#database.run(sql.LOOK, asked, signal);
      if (rows[0]?.is_beating !== true) throw heartbeatRequired();
      const given = rows.find((row) => row.found_as === "given");
      if (given) return { lease: toLease(given) };
      const seen = sessionId === null ? oneOf(rows, attempt) : named(rows, holder, sessionId);
      if (!seen) return undefined;
      onFound?.(seen.session_id);
      const taken = await this.#take(taker, seen, signal);
      if (taken) return taken;
    }
    // A named one changes hands faster than it can be taken.
    if (sessionId !== null) throw leaseHeld("", 0n);
    return undefined;
  }

  async release(
    owner: string,
    sessionId: string,
    epoch: bigint,
    settledPosition: bigint | null,
    signal?: AbortSignal,
  ): Promise<{ isRunnable: boolean } | undefined> {
    return this.#transaction(signal, async (connection) => {
      const [row] = await connection.run(sql.RELEASE, [sessionId, owner, epoch, settledPosition]);
      if (row) {
        // The tokens of the epoch end with it.
        await raiseFence(connection, sessionId, epoch + 1n, false);
        return { isRunnable: row.runnable };
      }
      const [other] = await connection.run(sql.GET_LEASE, [sessionId, null, this.#ttlMs]);
      return other && { isRunnable: false };
    });
  }

  async get(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<Lease | undefined> {
    const [row] = await this.#database.run(sql.GET_LEASE, [sessionId, scope, this.#ttlMs], signal);
    return row && toLease(row);
  }

  async countRunnable(cap: number, signal?: AbortSignal): Promise<number> {
    const [row] = await this.#database.run(sql.COUNT_RUNNABLE, [this.#ttlMs, cap], signal);
    return row?.count ?? 0;
  }

  // Undefined: the session is not as it was seen.
  async #take(taker: Taker, seen: Row, signal: AbortSignal | undefined): Promise<Given | undefined> {
    const epoch = seen.epoch + 1n;
    const event = this.#events.acquired(taker.owner, epoch, seen.owner !== null || seen.is_orphaned);
    const { role, subject } = this.#events.actor;
    const [taken] = await withFence(
      this.#database
        .runRaw(
          seen.found_as === "named" ? sql.TAKE_NAMED : sql.TAKE,
          [
            seen.session_id,
            taker.owner,
            taker.bootId,
            epoch,
            taker.requestId,
            event.id,
            event.type,
            role,
            subject,
            event.body,
            event.digest,
            seen.owner,
            seen.owner_boot,
            seen.is_orphaned,
            this.#ttlMs,
          ],
          signal,
        )
        .catch((error: unknown) => {
          // The same request came twice, and the other one of them was given a session meanwhile.
          if (isUniqueViolation(error, "sessions_lease_request")) return [];
          throw error;
        }),
    );
    if (!taken) return undefined;
    const lease = toLease({ ...taken, owner: taker.owner, epoch, alive: true });
    return { lease, acquired: freshEvent(event, this.#events.actor, { position: taken.head, at: taken.at }) };
  }

  async #transaction<T>(
    signal: AbortSignal | undefined,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#database.transaction(work, signal);
    } catch (error) {
      throw mapPgError(error);
    }
  }
}

// The longest wait first; whoever was too late for that one is not too late for the same next one as all the others.
function oneOf(rows: readonly Row[], attempt: number): Row | undefined {
  const free = rows.filter((row) => row.found_as === "free");
  return free[attempt === 0 ? 0 : Math.floor(Math.random() * free.length)];
}

function named(rows: readonly Row[], holder: Holder, sessionId: string): Row {
  const row = rows.find(({ found_as }) => found_as === "named");
  if (!row) throw sessionNotFound(sessionId);
  if (row.status === "terminated") throw sessionEnded();
  const isOwn = row.owner === holder.owner && row.owner_boot === holder.bootId;
  if (row.alive && !isOwn) throw leaseHeld(row.owner, row.epoch);
  return row;
}

function heartbeatRequired(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "HEARTBEAT_REQUIRED",
    message: "the instance has no live heartbeat of this boot; send HarnessHeartbeat first",
  });
}
