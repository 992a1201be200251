import type { Agent } from "../../gen/ganglion/agent/v1/agent_service.ts";
import type { Definition } from "../domain/agent/definition.ts";
import type { AgentState, AgentStore, Created, ListAgentsQuery } from "../ports/registry-stores.ts";
import type { RequestKey } from "../ports/session-store.ts";
import { boundedPage, cutPage } from "./bounded-page.ts";
import type { Connection, Database, Row, Statement } from "./database.ts";
import { readPageToken, writePageToken } from "./page-token.ts";
import { isUniqueViolation, mapPgError, sqlState } from "./pg-error.ts";
import { toOptionalTimestamp, toTimestamp } from "./pg-time.ts";
import { claimRequestId } from "./request-ids.ts";

const SELECT = `SELECT a.workspace_id, a.agent_id, a.created_at, a.archived_at, v.version, v.name, v.definition, octet_length(v.definition) AS size,
    v.created_at AS version_created_at
  FROM session.agents a JOIN session.agent_versions v ON v.workspace_id = a.workspace_id AND v.agent_id = a.agent_id`;
const OF_ONE = "a.agent_id = $1 AND ($2::text IS NULL OR a.workspace_id = $2)";

const INSERT_AGENT: Statement = {
  name: "agent_insert",
  text: "INSERT INTO session.agents (workspace_id, agent_id, version) VALUES ($1, $2, 1)",
};
const INSERT_VERSION: Statement = {
  name: "agent_insert_version",
  text: `INSERT INTO session.agent_versions (workspace_id, agent_id, version, name, definition)
    VALUES ($1, $2, $3, $4, $5)`,
};
const SET_VERSION: Statement = {
  name: "agent_set_version",
  text: "UPDATE session.agents SET version = $3 WHERE workspace_id = $1 AND agent_id = $2",
};
const SET_ARCHIVED: Statement = {
  name: "agent_archive",
  text: `UPDATE session.agents a SET archived_at = coalesce(a.archived_at, clock_timestamp()) WHERE ${OF_ONE}`,
};
const GET: Statement = {
  name: "agent_get",
  text: `${SELECT} AND v.version = CASE WHEN $3::int = 0 THEN a.version ELSE $3::int END WHERE ${OF_ONE}`,
};
const GET_LOCKED: Statement = {
  name: "agent_get_locked",
  text: `${SELECT} AND v.version = a.version WHERE ${OF_ONE} FOR UPDATE OF a`,
};
const LOCK: Statement = {
  name: "agent_lock",
  text: `SELECT 1 AS one FROM session.agents a WHERE ${OF_ONE} FOR UPDATE`,
};
const LIST = boundedPage(
  "agent_list",
  `${SELECT} AND v.version = a.version WHERE a.workspace_id = $1
      AND ($2::timestamptz IS NULL OR (a.created_at, a.agent_id) < ($2::timestamptz, $3::text))
      AND ($4 OR a.archived_at IS NULL)
      AND ($5::timestamptz IS NULL OR a.created_at >= $5::timestamptz)
      AND ($6::timestamptz IS NULL OR a.created_at <= $6::timestamptz)
    ORDER BY a.created_at DESC, a.agent_id DESC LIMIT $7`,
  "created_at DESC, agent_id DESC",
);
const LIST_VERSIONS = boundedPage(
  "agent_list_versions",
  `${SELECT} WHERE ${OF_ONE} AND ($3::int IS NULL OR v.version < $3::int) ORDER BY v.version DESC LIMIT $4`,
  "version DESC",
);

/** Agents in PostgreSQL. */
export class PgAgentStore implements AgentStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async create(
    workspaceId: string,
    agentId: string,
    definition: Definition,
    request: RequestKey | null,
    signal?: AbortSignal,
  ): Promise<Created<Agent>> {
    try {
      return await this.#database.transaction(async (connection) => {
        await connection.run(INSERT_AGENT, [workspaceId, agentId]);
        await claimRequestId(connection, workspaceId, request, agentId);
        await insertVersion(connection, workspaceId, agentId, 1, definition);
        const [row] = await connection.run(GET, [agentId, workspaceId, 1]);
        return toAgent(row as Row);
      }, signal);
    } catch (error) {
      if (isUniqueViolation(error, "request_ids_pkey")) return "request_id_taken";
      if (sqlState(error) === "23503") return "no_workspace";
      throw mapPgError(error);
    }
  }

  async get(
    agentId: string,
    version: number,
    scope: string | null,
    signal?: AbortSignal,
  ): Promise<Agent | undefined> {
    const [row] = await this.#database.run(GET, [agentId, scope, version], signal);
    return row && toAgent(row);
  }

  async list(
    query: ListAgentsQuery,
    signal?: AbortSignal,
  ): Promise<{ agents: Agent[]; nextPageToken: string }> {
    const key = readPageToken("agents", query.pageToken);
    const values = [
      query.workspaceId,
      key?.at ?? null,
      key?.id ?? null,
      query.includeArchived,
      query.createdAtOrAfter,
      query.createdAtOrBefore,
      query.pageSize + 1,
    ];
    const rows = await this.#database.run(LIST, values, signal);
    const { page, last } = cutPage(rows, query.pageSize);
    const nextPageToken = last ? writePageToken("agents", { at: last.created_at, id: last.agent_id }) : "";
    return { agents: page.map(toAgent), nextPageToken };
  }

  async listVersions(
    agentId: string,
    scope: string | null,
    beforeVersion: number | null,
    pageSize: number,
    signal?: AbortSignal,
  ): Promise<{ agents: Agent[]; hasMore: boolean }> {
    const rows = await this.#database.run(
      LIST_VERSIONS,
      [agentId, scope, beforeVersion, pageSize + 1],
      signal,
    );
    const { page, last } = cutPage(rows, pageSize);
    return { agents: page.map(toAgent), hasMore: last !== undefined };
  }

  async update(
    agentId: string,
    scope: string | null,
    decide: (current: AgentState) => Definition | null,
    signal?: AbortSignal,
  ): Promise<Agent | undefined> {
    try {
      return await this.#database.transaction(async (connection) => {
        // First the lock, then a statement that sees what the one before left.
        await connection.run(LOCK, [agentId, scope]);
        const [row] = await connection.run(GET_LOCKED, [agentId, scope]);
        if (!row) return undefined;
        const definition = decide({
          version: row.version,
          isArchived: row.archived_at !== null,
          definition: JSON.parse(row.definition.toString("utf8")),
        });
        if (!definition) return toAgent(row);
        const version = row.version + 1;
        await insertVersion(connection, row.workspace_id, agentId, version, definition);
        await connection.run(SET_VERSION, [row.workspace_id, agentId, version]);
        const [after] = await connection.run(GET, [agentId, scope, version]);
        return after && toAgent(after);
      }, signal);
    } catch (error) {
      throw mapPgError(error);
    }
  }

  async archive(agentId: string, scope: string | null, signal?: AbortSignal): Promise<Agent | undefined> {
    await this.#database.run(SET_ARCHIVED, [agentId, scope], signal);
    return this.get(agentId, 0, scope, signal);
  }
}

async function insertVersion(
  connection: Connection,
  workspaceId: string,
  agentId: string,
  version: number,
  definition: Definition,
): Promise<void> {
  const json = Buffer.from(JSON.stringify(definition));
  await connection.run(INSERT_VERSION, [workspaceId, agentId, version, definition.name, json]);
}

function toAgent(row: Row): Agent {
  return {
    id: row.agent_id,
    workspaceId: row.workspace_id,
    version: row.version,
    definitionJson: row.definition,
    name: row.name,
    createTime: toTimestamp(row.created_at),
    updateTime: toTimestamp(row.version_created_at),
    archiveTime: toOptionalTimestamp(row.archived_at),
  };
}
