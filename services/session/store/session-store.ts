import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Append, NewEvent, Status } from "../domain/append.ts";
import { sessionEnded, sessionRunning } from "../domain/errors.ts";
import type {
  ChangedSession,
  ListSessionsQuery,
  NewSession,
  SessionChange,
  SessionPage,
  SessionStore,
} from "../ports/session-store.ts";
import { appendAsService } from "./append-as-service.ts";
import { boundedPage, cutPage } from "./bounded-page.ts";
import type { Connection, Database, Row, Statement } from "./database.ts";
import { raiseFence } from "./fence.ts";
import { readPageToken, writePageToken } from "./page-token.ts";
import { isUniqueViolation, mapPgError } from "./pg-error.ts";
import { readMetadata, SESSION_COLUMNS, SESSION_TABLES, toSession, writeMetadata } from "./session-row.ts";
import { CREATE_SESSION, createSessionValues } from "./session-statements.ts";

const GET: Statement = {
  name: "session_get",
  text: `SELECT ${SESSION_COLUMNS} FROM ${SESSION_TABLES}
    WHERE s.session_id = $1 AND ($2::text IS NULL OR s.workspace_id = $2)`,
};
// As a plain UPDATE locks it: a fork that is being made of the session holds up its removal alone.
const GET_LOCKED: Statement = { name: "session_get_locked", text: `${GET.text} FOR NO KEY UPDATE OF s` };
const GET_TO_REMOVE: Statement = { name: "session_get_to_remove", text: `${GET.text} FOR UPDATE OF s` };
const SET_SETTINGS: Statement = {
  name: "session_set_settings",
  text: `UPDATE session.session_settings SET title = $3, metadata = $4, agent_json = $5, budget_cents = $6
    WHERE workspace_id = $1 AND session_id = $2`,
};
const SET_ARCHIVED: Statement = {
  name: "session_set_archived",
  text: `UPDATE session.sessions SET archived_at = clock_timestamp(), updated_at = clock_timestamp(), owner = NULL,
    owner_boot = NULL WHERE workspace_id = $1 AND session_id = $2`,
};
const SET_KILLED: Statement = {
  name: "session_set_killed",
  text: `UPDATE session.sessions SET epoch = epoch + 1, owner = NULL, owner_boot = NULL
    WHERE workspace_id = $1 AND session_id = $2`,
};
const DELETE: Statement = {
  name: "session_delete",
  text: "SELECT session.delete_session($1, $2) AS is_deleted",
};

// Sorted by time and id, so that sessions of one microsecond are neither skipped nor repeated. [B056]
function listStatement(name: string, order: "ASC" | "DESC"): Statement {
  const beyond = order === "ASC" ? ">" : "<";
  return boundedPage(
    name,
    `SELECT ${SESSION_COLUMNS}, octet_length(t.agent_json) + octet_length(t.metadata) + octet_length(t.title) AS size
      FROM ${SESSION_TABLES} WHERE s.workspace_id = $1
        AND ($2::timestamptz IS NULL OR (s.created_at, s.session_id) ${beyond} ($2::timestamptz, $3::text))
        AND ($4::text IS NULL OR s.agent_id = $4)
        AND ($5::int IS NULL OR s.agent_version = $5)
        AND ($6::text[] IS NULL OR s.status = ANY ($6::text[]))
        AND ($7 OR s.archived_at IS NULL)
        AND ($8::timestamptz IS NULL OR s.created_at >= $8::timestamptz)
        AND ($9::timestamptz IS NULL OR s.created_at < $9::timestamptz)
      ORDER BY s.created_at ${order}, s.session_id ${order} LIMIT $10`,
    `created_at ${order}, session_id ${order}`,
  );
}
const LIST_ASC = listStatement("session_list_asc", "ASC");
const LIST_DESC = listStatement("session_list_desc", "DESC");

/** Sessions' records in PostgreSQL. */
export class PgSessionStore implements SessionStore {
  readonly #database: Database;
  readonly #actor: Append["actor"];

  /** `actor` is this service, in the events that it appends itself. */
  constructor(database: Database, actor: Append["actor"]) {
    this.#database = database;
    this.#actor = actor;
  }

  async create(session: NewSession, signal?: AbortSignal): Promise<"created" | "request_id_taken"> {
    try {
      await this.#database.runRaw(CREATE_SESSION, createSessionValues(session), signal);
      return "created";
    } catch (error) {
      if (isUniqueViolation(error, "request_ids_pkey")) return "request_id_taken";
      throw mapPgError(error);
    }
  }

  async get(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<Session | undefined> {
    const [row] = await this.#database.run(GET, [sessionId, scope], signal);
    return row && toSession(row);
  }

  async list(query: ListSessionsQuery, signal?: AbortSignal): Promise<SessionPage> {
    const list = query.isAscending ? "sessions+" : "sessions-";
    const key = readPageToken(list, query.pageToken);
    const values = [
      query.workspaceId,
      key?.at ?? null,
      key?.id ?? null,
      query.agentId,
      query.agentVersion,
      query.statuses,
      query.includeArchived,
      query.createdAtOrAfter,
      query.createdBefore,
      query.pageSize + 1,
    ];
    const rows = await this.#database.run(query.isAscending ? LIST_ASC : LIST_DESC, values, signal);
    const { page, last } = cutPage(rows, query.pageSize);
    const token = last ? writePageToken(list, { at: last.created_at, id: last.session_id }) : "";
    return { sessions: page.map(toSession), nextPageToken: token };
  }

  async update(
    sessionId: string,
    scope: string | null,
    decide: (current: Session) => Promise<SessionChange | null>,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined> {
    return this.#change(sessionId, scope, signal, async (connection, row) => {
      if (row.status === "terminated") throw sessionEnded();
      const change = await decide(toSession(row));
      if (!change) return null;
      const settings = [
        change.title ?? row.title,
        writeMetadata(change.metadata ?? readMetadata(row.metadata)),
        change.agentJson ?? row.agent_json,
        change.budgetCents === undefined ? row.budget_cents : change.budgetCents,
      ];
      await connection.run(SET_SETTINGS, [row.workspace_id, row.session_id, ...settings]);
      return appendAsService(connection, this.#actor, row, change.event);
    });
  }

  async archive(
    sessionId: string,
    scope: string | null,
    terminated: NewEvent,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined> {
    return this.#change(sessionId, scope, signal, async (connection, row) => {
      if (row.archived_at !== null) return null;
      if (isWorking(row.status)) throw sessionRunning();
      // First of all the tokens (law L7); one transaction makes it all or nothing.
      await raiseFence(connection, row.session_id, row.epoch + 1n, true);
      const head =
        row.status === "terminated" ? null : await appendAsService(connection, this.#actor, row, terminated);
      await connection.run(SET_ARCHIVED, [row.workspace_id, row.session_id]);
      return head;
    });
  }

  async kill(
    sessionId: string,
    scope: string | null,
    terminated: NewEvent,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined> {
    return this.#change(sessionId, scope, signal, async (connection, row) => {
      if (row.status === "terminated") return null;
      // First of all the tokens (law L7), then the epoch, so that its harness can write nothing more.
      await raiseFence(connection, row.session_id, row.epoch + 1n, true);
      await connection.run(SET_KILLED, [row.workspace_id, row.session_id]);
      return appendAsService(connection, this.#actor, row, terminated);
    });
  }

  async delete(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<boolean> {
    return this.#transaction(signal, async (connection) => {
      const [row] = await connection.run(GET_TO_REMOVE, [sessionId, scope]);
      if (!row) return false;
      if (isWorking(row.status)) throw sessionRunning();
      await raiseFence(connection, row.session_id, row.epoch + 1n, true);
      await connection.run(DELETE, [row.workspace_id, row.session_id]);
      return true;
    });
  }

  // Locks the row, changes it, reads it again. `head` is that of an append, null when there was none.
  async #change(
    sessionId: string,
    scope: string | null,
    signal: AbortSignal | undefined,
    work: (connection: Connection, row: Row) => Promise<bigint | null>,
  ): Promise<ChangedSession | undefined> {
    return this.#transaction(signal, async (connection) => {
      const [row] = await connection.run(GET_LOCKED, [sessionId, scope]);
      if (!row) return undefined;
      const head = await work(connection, row);
      const [after] = await connection.run(GET, [sessionId, scope]);
      return after && { session: toSession(after), head };
    });
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

function isWorking(status: Status): boolean {
  return status === "running" || status === "rescheduling";
}
