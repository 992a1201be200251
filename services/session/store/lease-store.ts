import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Lease } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Append, NewEvent } from "../domain/append.ts";
import { leaseHeld, sessionEnded, sessionNotFound } from "../domain/errors.ts";
import type { Heartbeat, Holder, LeaseStore } from "../ports/lease-store.ts";
import type { Connection, Database, Row } from "./database.ts";
import { raiseFence, withFence } from "./fence.ts";
import * as sql from "./lease-statements.ts";
import { mapPgError } from "./pg-error.ts";
import { toLease } from "./session-row.ts";

const MAX_ATTEMPTS = 5;

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
    sessionId: string | null,
    requestId: string | null,
    signal?: AbortSignal,
  ): Promise<Lease | undefined> {
    const values = [holder.owner, holder.bootId, requestId, sessionId, this.#ttlMs];
    const [known] = await this.#database.run(sql.CHECK_TAKER, values, signal);
    if (known?.is_beating !== true) throw heartbeatRequired();
    if (known.session_id !== null) return toLease(known);
    const taker = { ...holder, requestId };
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const result = await this.#transaction(signal, (connection) =>
        sessionId === null ? this.#takeAny(connection, taker) : this.#takeOne(connection, taker, sessionId),
      );
      if (result !== "again") return result;
    }
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

  async #takeAny(connection: Connection, holder: Taker): Promise<Lease | undefined | "again"> {
    const [found] = await connection.run(sql.FIND_RUNNABLE, [this.#ttlMs]);
    if (!found) return undefined;
    // The row is locked now; only a statement begun after that sees for certain who owns it.
    const [row] = await connection.run(sql.GET_LEASE, [found.session_id, null, this.#ttlMs]);
    if (!row?.runnable || row.alive) return "again";
    return this.#take(connection, holder, row);
  }

  async #takeOne(connection: Connection, holder: Taker, sessionId: string): Promise<Lease> {
    const [locked] = await connection.run(sql.LOCK, [sessionId]);
    const [row] = locked ? await connection.run(sql.GET_LEASE, [sessionId, null, this.#ttlMs]) : [];
    if (!row) throw sessionNotFound(sessionId);
    if (row.status === "terminated") throw sessionEnded();
    const isOwn = row.owner === holder.owner && row.owner_boot === holder.bootId;
    if (row.alive && !isOwn) throw leaseHeld(row.owner, row.epoch);
    return this.#take(connection, holder, row);
  }

  // Epoch, event and fence are one transaction: no token of the old epoch outlives the new one.
  async #take(connection: Connection, holder: Taker, row: Row): Promise<Lease> {
    const epoch = row.epoch + 1n;
    const event = this.#events.acquired(holder.owner, epoch, row.owner !== null || row.is_orphaned);
    const { role, subject } = this.#events.actor;
    const [taken] = await withFence(
      connection.run(sql.TAKE, [
        row.session_id,
        holder.owner,
        holder.bootId,
        epoch,
        holder.requestId,
        event.id,
        event.type,
        role,
        subject,
        event.body,
        event.digest,
      ]),
    );
    if (!taken) throw new Error("a locked session could not be taken");
    return toLease({ ...row, owner: holder.owner, epoch, head: taken.head, alive: true });
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

function heartbeatRequired(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "HEARTBEAT_REQUIRED",
    message: "the instance has no live heartbeat of this boot; send HarnessHeartbeat first",
  });
}
