import { newId } from "../../common/ids/new-id.ts";
import type { ApiKey } from "../../gen/ganglion/agent/v1/api_key_service.ts";
import type { ApiKeyStore, PageQuery, Workspaces } from "../ports/registry-stores.ts";
import type { Database, Row, Statement } from "./database.ts";
import { readPageToken, writePageToken } from "./page-token.ts";
import { isUniqueViolation, mapPgError } from "./pg-error.ts";
import { toOptionalTimestamp, toTimestamp } from "./pg-time.ts";

const COLUMNS = "workspace_id, api_key_id, name, created_at, revoked_at";
// A workspace exists from its first key on: without one nobody can be in it.
const ADD_WORKSPACE: Statement = {
  name: "key_add_workspace",
  text: "INSERT INTO session.workspaces (workspace_id) VALUES ($1) ON CONFLICT DO NOTHING",
};
const WORKSPACE_EXISTS: Statement = {
  name: "key_workspace_exists",
  text: "SELECT 1 AS one FROM session.workspaces WHERE workspace_id = $1",
};
const INSERT: Statement = {
  name: "key_insert",
  text: `INSERT INTO session.api_keys (workspace_id, api_key_id, key_sha256, name) VALUES ($1, $2, $3, $4)
    RETURNING ${COLUMNS}`,
};
const BY_HASH: Statement = {
  name: "key_by_hash",
  text: `SELECT ${COLUMNS} FROM session.api_keys WHERE key_sha256 = $1`,
};
const REVOKE: Statement = {
  name: "key_revoke",
  text: `UPDATE session.api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE api_key_id = $1
    RETURNING ${COLUMNS}`,
};
const LIST: Statement = {
  name: "key_list",
  text: `SELECT ${COLUMNS} FROM session.api_keys WHERE workspace_id = $1
      AND ($2::timestamptz IS NULL OR (created_at, api_key_id) < ($2::timestamptz, $3::text))
    ORDER BY created_at DESC, api_key_id DESC LIMIT $4`,
};

/** API keys in PostgreSQL: hashes only. */
export class PgApiKeyStore implements ApiKeyStore, Workspaces {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async exists(workspaceId: string, signal?: AbortSignal): Promise<boolean> {
    return (await this.#database.run(WORKSPACE_EXISTS, [workspaceId], signal)).length > 0;
  }

  async create(
    workspaceId: string,
    sha256: Uint8Array,
    name: string,
    signal?: AbortSignal,
  ): Promise<ApiKey | "taken"> {
    try {
      return await this.#database.transaction(async (connection) => {
        await connection.run(ADD_WORKSPACE, [workspaceId]);
        const [row] = await connection.run(INSERT, [workspaceId, newId("apikey"), sha256, name]);
        return toApiKey(row as Row);
      }, signal);
    } catch (error) {
      if (!isUniqueViolation(error, "api_keys_sha256")) throw mapPgError(error);
    }
    const [row] = await this.#database.run(BY_HASH, [sha256], signal);
    return row?.workspace_id === workspaceId ? toApiKey(row) : "taken";
  }

  async list(query: PageQuery, signal?: AbortSignal): Promise<{ apiKeys: ApiKey[]; nextPageToken: string }> {
    const key = readPageToken("api_keys", query.pageToken);
    const values = [query.workspaceId, key?.at ?? null, key?.id ?? null, query.pageSize + 1];
    const rows = await this.#database.run(LIST, values, signal);
    const page = rows.slice(0, query.pageSize);
    const last = page.at(-1);
    const hasMore = rows.length > page.length && last;
    const nextPageToken = hasMore
      ? writePageToken("api_keys", { at: last.created_at, id: last.api_key_id })
      : "";
    return { apiKeys: page.map(toApiKey), nextPageToken };
  }

  async revoke(apiKeyId: string, signal?: AbortSignal): Promise<ApiKey | undefined> {
    const [row] = await this.#database.run(REVOKE, [apiKeyId], signal);
    return row && toApiKey(row);
  }

  async find(sha256: Uint8Array, signal?: AbortSignal): Promise<ApiKey | undefined> {
    const [row] = await this.#database.run(BY_HASH, [sha256], signal);
    return row && row.revoked_at === null ? toApiKey(row) : undefined;
  }
}

function toApiKey(row: Row): ApiKey {
  return {
    id: row.api_key_id,
    workspaceId: row.workspace_id,
    name: row.name,
    createTime: toTimestamp(row.created_at),
    revokeTime: toOptionalTimestamp(row.revoked_at),
  };
}
