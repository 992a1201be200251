import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { type Append, type Appended, bytesOf, combinedEffect, type StoredAt } from "../domain/append.ts";
import { APPEND_MANY, APPEND_ONE, appendManyValues, appendOneValues } from "./append-statements.ts";
import type { Connection, Database } from "./database.ts";
import { raiseFence } from "./fence.ts";
import { GroupCommit } from "./group-commit.ts";
import { isUniqueViolation, mapPgError } from "./pg-error.ts";
import { explainRefusal, findStored } from "./refused-append.ts";

const GROUP_MAX_BYTES = 1 << 20;
const MAX_ATTEMPTS = 5;
const LANES = 3;

/** What was appended by this process and is durable now. */
export interface Fresh {
  /** With the events that are new, all of them. */
  readonly append: Append;
  readonly head: bigint;
  /** The database's text of the time. */
  readonly at: string;
  /** Whether somebody holds the session; one who is dead counts too. */
  readonly isHeld: boolean;
}

/** Outcome of one try; undefined = the statement refused it or it clashed, and nothing was written. */
type Try = (Appended & Pick<Fresh, "at" | "isHeld">) | undefined;

/** Appends events: dense, atomic, fenced and idempotent (laws L2, L3). */
export class AppendStore {
  readonly #database: Database;
  readonly #onAppended: (fresh: Fresh) => void;
  readonly #group: GroupCommit<Append, Try>;

  /** `lanes` is how many statements may run at a time: fewer make larger groups, more hide the commit's latency. */
  constructor(database: Database, onAppended: (fresh: Fresh) => void, lanes = LANES) {
    this.#database = database;
    this.#onAppended = onAppended;
    this.#group = new GroupCommit<Append, Try>({
      lanes,
      maxCalls: 64,
      maxBytes: GROUP_MAX_BYTES,
      sizeOf: ({ events }) => bytesOf(events),
      keyOf: (append) => append.sessionId,
      run: (appends) => this.#runGroup(appends),
    });
  }

  /** Appends all events of the call or none of them; throws the reason when it is refused. */
  async append(append: Append, signal?: AbortSignal): Promise<Appended> {
    let known = new Map<string, StoredAt>();
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const rest = append.events.filter(({ id }) => !known.has(id));
      const fresh = rest.length === append.events.length ? append : { ...append, events: rest };
      const done = await this.#try(fresh, signal);
      if (done) {
        this.#onAppended({ append: fresh, head: done.head, at: done.at, isHeld: done.isHeld });
        return merge(append, done, known);
      }
      // Nothing was written: an id clashed, or the row refused. Find out which, and go on with what is new.
      const refusal = await explainRefusal(this.#database, append, signal);
      if (refusal.reason && !refusal.isAnsweredByDuplicates) throw refusal.reason;
      known = await findStored(this.#database, append, signal);
      if (known.size === append.events.length)
        return merge(append, { head: refusal.head, stored: [] }, known);
      if (refusal.reason) throw refusal.reason;
    }
    throw new GanglionError({
      code: "ABORTED",
      reason: "POSITION_CONFLICT",
      message: "the log changed too often while the events were appended; try again",
      retryAfterMs: 50,
    });
  }

  async #try(append: Append, signal?: AbortSignal): Promise<Try> {
    if (combinedEffect(append.events).status === "terminated") return this.#tryWithFence(append, signal);
    // What depends on the exact head cannot share its session with others in one statement.
    if (append.expectedPosition === null && bytesOf(append.events) <= GROUP_MAX_BYTES / 8) {
      return this.#group.submit(append, signal);
    }
    return this.#tryOne(append, signal);
  }

  async #tryOne(append: Append, signal?: AbortSignal): Promise<Try> {
    try {
      const rows = await this.#database.runRaw(APPEND_ONE, appendOneValues(append), signal);
      return appended(append, rows[0]);
    } catch (error) {
      if (isUniqueViolation(error)) return undefined;
      throw mapPgError(error);
    }
  }

  // The end of a session is a revocation (law L7): fence and event are one transaction.
  async #tryWithFence(append: Append, signal?: AbortSignal): Promise<Try> {
    try {
      return await this.#database.transaction(
        (connection) => appendInTransaction(connection, append, true),
        signal,
      );
    } catch (error) {
      if (isUniqueViolation(error)) return undefined;
      throw mapPgError(error);
    }
  }

  async #runGroup(appends: readonly Append[]): Promise<PromiseSettledResult<Try>[]> {
    const [only] = appends;
    if (only && appends.length === 1) return Promise.allSettled([this.#tryOne(only)]);
    try {
      const rows = await this.#database.runRaw(APPEND_MANY, appendManyValues(appends));
      const byOrd = new Map(rows.map((row) => [row.ord, row]));
      return appends.map((append, index) => ({
        status: "fulfilled",
        value: appended(append, byOrd.get(index + 1)),
      }));
    } catch (error) {
      if (!isUniqueViolation(error)) throw mapPgError(error);
      // One caller's duplicate must not fail its neighbours.
      const results: PromiseSettledResult<Try>[] = [];
      for (const append of appends) results.push(...(await Promise.allSettled([this.#tryOne(append)])));
      return results;
    }
  }
}

/** Appends within a transaction that others have begun; undefined when the row refused it. */
export async function appendInTransaction(
  connection: Connection,
  append: Append,
  isEnd: boolean,
): Promise<Try> {
  const [row] = await connection.run(APPEND_ONE, appendOneValues(append));
  if (row && isEnd) await raiseFence(connection, append.sessionId, append.lease?.epoch ?? 0n, true);
  return appended(append, row);
}

function appended(append: Append, row: Record<string, unknown> | undefined): Try {
  if (!row) return undefined;
  const head = row.head as bigint;
  const base = head - BigInt(append.events.length);
  return {
    head,
    at: row.at as string,
    isHeld: row.held === true,
    stored: append.events.map(({ id }, index) => ({
      eventId: id,
      position: base + BigInt(index + 1),
      at: row.at as string,
      isDuplicate: false,
    })),
  };
}

function merge(append: Append, done: Appended, known: ReadonlyMap<string, StoredAt>): Appended {
  if (known.size === 0) return { head: done.head, stored: done.stored };
  const fresh = new Map(done.stored.map((stored) => [stored.eventId, stored]));
  const stored = append.events.map(({ id }) => (fresh.get(id) ?? known.get(id)) as StoredAt);
  return { head: done.head, stored };
}
