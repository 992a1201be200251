import type { Slice, SliceQuery } from "../ports/log-store.ts";
import type { Database, Statement } from "./database.ts";
import { decodeStoredEvent } from "./event-codec.ts";

// Upper bound of what an event adds to its body when it is encoded: id, type, actor, times, trace.
const ENVELOPE_BYTES = 512;

// The page is cut by bytes in the database, so that what is not sent is not read either. [B046, B128]
function readStatement(name: string, direction: "ASC" | "DESC"): Statement {
  return {
    name,
    text: `SELECT s.workspace_id, s.head, s.status, p.* FROM session.sessions s
      LEFT JOIN LATERAL (
        SELECT e.*, sum(octet_length(e.body) + ${ENVELOPE_BYTES}) OVER (ORDER BY e.position ${direction}) AS total,
          count(*) OVER () AS available
        FROM (
          SELECT position, event_id, type, thread_id, epoch, actor_role, actor_subject, traceparent, may_ignore,
            body, created_at
          FROM session.events
          WHERE workspace_id = s.workspace_id AND session_id = s.session_id
            AND position > $3 AND ($4::bigint IS NULL OR position < $4::bigint)
            AND ($5::text[] IS NULL OR type = ANY ($5::text[]))
          ORDER BY position ${direction} LIMIT $6
        ) e
      ) p ON p.total - (octet_length(p.body) + ${ENVELOPE_BYTES}) = 0 OR p.total <= $7
      WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)
      ORDER BY p.position ${direction}`,
  };
}

const READ_ASC = readStatement("read_asc", "ASC");
const READ_DESC = readStatement("read_desc", "DESC");

const POSITION_OF: Statement = {
  name: "read_position",
  text: `SELECT e.position FROM session.sessions s
    JOIN session.events e ON e.workspace_id = s.workspace_id AND e.session_id = s.session_id
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2) AND e.event_id = $3`,
};

const HEADS: Statement = {
  name: "read_heads",
  text: "SELECT session_id, head, status FROM session.sessions WHERE session_id = ANY ($1::text[])",
};

/** Reads logs by position. */
export class ReadStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads a slice; undefined when the session does not exist in the scope. */
  async read(query: SliceQuery, signal?: AbortSignal): Promise<Slice | undefined> {
    const values = [
      query.sessionId,
      query.scope,
      query.after,
      query.before,
      query.types,
      // One more than asked, to know whether there is more.
      query.limit + 1,
      query.maxBytes,
    ];
    const rows = await this.#database.run(query.isDescending ? READ_DESC : READ_ASC, values, signal);
    const [first] = rows;
    if (!first) return undefined;
    const found = rows.filter((row) => row.position !== null);
    const page = found.slice(0, query.limit);
    return {
      workspaceId: first.workspace_id,
      bytes: Number(page.at(-1)?.total ?? 0),
      events: page.map(decodeStoredEvent),
      head: first.head,
      status: first.status,
      hasMore: found.length > 0 && first.available > BigInt(page.length),
    };
  }

  /** Position of the event with that id; undefined when the log has none. */
  async positionOf(
    sessionId: string,
    scope: string | null,
    eventId: string,
    signal?: AbortSignal,
  ): Promise<bigint | undefined> {
    const [row] = await this.#database.run(POSITION_OF, [sessionId, scope, eventId], signal);
    return row?.position;
  }

  /** Heads of sessions that this process follows; sessions that are gone are missing. */
  async heads(sessionIds: readonly string[]): Promise<Map<string, { head: bigint; status: string }>> {
    const rows = await this.#database.run(HEADS, [sessionIds]);
    return new Map(rows.map((row) => [row.session_id, { head: row.head, status: row.status }]));
  }
}
