import type { Append, Appended, StoredAt } from "../../../../services/session/domain/append.ts";
import {
  idReused,
  positionConflict,
  sessionEnded,
  sessionNotFound,
  staleEpoch,
} from "../../../../services/session/domain/errors.ts";
import type { LogStore, Slice, SliceQuery } from "../../../../services/session/ports/log-store.ts";
import { decodeStoredEvent } from "../../../../services/session/store/event-codec.ts";
import { appendRow } from "./append-row.ts";
import type { SessionRow, SimDatabase } from "./sim-database.ts";

const MAX_ATTEMPTS = 5;

/** The log's store over the simulated database: the same steps as the real one, each of them one statement. */
export class SimLogStore implements LogStore {
  readonly #database: SimDatabase;
  readonly #announce: (sessionId: string, isRunnable: boolean) => void;

  constructor(database: SimDatabase, announce: (sessionId: string, isRunnable: boolean) => void) {
    this.#database = database;
    this.#announce = announce;
  }

  async append(append: Append): Promise<Appended> {
    const done = await this.#append(append);
    for (const { eventId, position } of done.stored) {
      this.#database.confirmed.push({ sessionId: append.sessionId, eventId, position });
    }
    return done;
  }

  async #append(append: Append): Promise<Appended> {
    let known = new Map<string, StoredAt>();
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const rest = append.events.filter(({ id }) => !known.has(id));
      await this.#database.step();
      const done = appendRow(this.#database, { ...append, events: rest });
      if (done && done !== "clash") {
        this.#announce(
          append.sessionId,
          rest.some(({ effect }) => effect?.runnable === true),
        );
        return answer(
          append,
          done.head,
          done.at,
          rest.map(({ id }) => id),
          known,
        );
      }
      await this.#database.step();
      const refusal = this.#explain(append);
      if (refusal.reason && !refusal.isAnsweredByDuplicates) throw refusal.reason;
      await this.#database.step();
      known = this.#findStored(append);
      if (known.size === append.events.length) return answer(append, refusal.head, "", [], known);
      if (refusal.reason) throw refusal.reason;
    }
    throw positionConflict(0n);
  }

  async read(query: SliceQuery): Promise<Slice | undefined> {
    await this.#database.step();
    const row = this.#database.sessions.get(query.sessionId);
    if (!row) return undefined;
    const rows = row.events.slice(Number(query.after), Number(query.after) + query.limit);
    return {
      workspaceId: row.workspaceId,
      events: rows.map((stored) => decodeStoredEvent(stored.row as never)),
      bytes: rows.length * 1000,
      head: BigInt(row.events.length),
      status: row.status,
      hasMore: row.events.length > Number(query.after) + rows.length,
    };
  }

  async positionOf(sessionId: string, _scope: string | null, eventId: string): Promise<bigint | undefined> {
    await this.#database.step();
    const position = this.#database.sessions.get(sessionId)?.positions.get(eventId);
    return position === undefined ? undefined : BigInt(position);
  }

  async storedOf(sessionId: string, eventIds: readonly string[]): Promise<string[]> {
    await this.#database.step();
    const positions = this.#database.sessions.get(sessionId)?.positions;
    return eventIds.filter((id) => positions?.has(id));
  }

  async heads(sessionIds: readonly string[]): Promise<Map<string, { head: bigint; status: string }>> {
    await this.#database.step();
    const rows = sessionIds.flatMap((id) => this.#database.sessions.get(id) ?? []);
    return new Map(
      rows.map((row) => [row.sessionId, { head: BigInt(row.events.length), status: row.status }]),
    );
  }

  #explain(append: Append): { reason?: Error; isAnsweredByDuplicates: boolean; head: bigint } {
    const row = this.#database.sessions.get(append.sessionId);
    if (!row) return { reason: sessionNotFound(append.sessionId), isAnsweredByDuplicates: false, head: 0n };
    const head = BigInt(row.events.length);
    if (isStale(append, row)) return { reason: staleEpoch(row.epoch), isAnsweredByDuplicates: false, head };
    if (row.status === "terminated") return { reason: sessionEnded(), isAnsweredByDuplicates: true, head };
    if (append.expectedPosition !== null && append.expectedPosition !== head) {
      return { reason: positionConflict(head), isAnsweredByDuplicates: true, head };
    }
    return { isAnsweredByDuplicates: true, head };
  }

  #findStored(append: Append): Map<string, StoredAt> {
    const row = this.#database.sessions.get(append.sessionId);
    const stored = new Map<string, StoredAt>();
    for (const { id, digest } of append.events) {
      const position = row?.positions.get(id);
      const found = position === undefined ? undefined : row?.events[position - 1];
      if (!found) continue;
      if (Buffer.compare(found.digest, digest) !== 0) throw idReused(id);
      stored.set(id, {
        eventId: id,
        position: BigInt(position as number),
        at: found.row.created_at as string,
        isDuplicate: true,
      });
    }
    return stored;
  }
}

function isStale(append: Append, row: SessionRow): boolean {
  if (!append.lease) return false;
  if (row.epoch !== append.lease.epoch) return true;
  return row.owner !== append.lease.owner && row.status !== "terminated";
}

function answer(
  append: Append,
  head: bigint,
  at: string,
  fresh: readonly string[],
  known: ReadonlyMap<string, StoredAt>,
): Appended {
  const base = head - BigInt(fresh.length);
  const stored = append.events.map(({ id }) => {
    const index = fresh.indexOf(id);
    return known.get(id) ?? { eventId: id, position: base + BigInt(index + 1), at, isDuplicate: false };
  });
  return { head, stored };
}
