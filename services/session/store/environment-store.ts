import type { Environment } from "../../gen/ganglion/agent/v1/environment_service.ts";
import type { EnvironmentSpec } from "../domain/environment/resolve-environment.ts";
import type { Created, EnvironmentStore, PageQuery } from "../ports/registry-stores.ts";
import type { RequestKey } from "../ports/session-store.ts";
import { boundedPage, cutPage } from "./bounded-page.ts";
import type { Database, Row, Statement } from "./database.ts";
import { readPageToken, writePageToken } from "./page-token.ts";
import { isUniqueViolation, mapPgError, sqlState } from "./pg-error.ts";
import { toOptionalTimestamp, toTimestamp } from "./pg-time.ts";
import { claimRequestId } from "./request-ids.ts";
import { readMetadata, writeMetadata } from "./session-row.ts";

// By name: a replica that was there before a newer one added a column would have no statement for all of them any more.
const COLUMNS =
  "workspace_id, environment_id, name, description, config, metadata, created_at, updated_at, archived_at";
const OF_ONE = "environment_id = $1 AND ($2::text IS NULL OR workspace_id = $2)";
const INSERT: Statement = {
  name: "environment_insert",
  text: `INSERT INTO session.environments (workspace_id, environment_id, name, description, config, metadata)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
};
const GET: Statement = {
  name: "environment_get",
  text: `SELECT ${COLUMNS} FROM session.environments WHERE ${OF_ONE}`,
};
const GET_LOCKED: Statement = { name: "environment_get_locked", text: `${GET.text} FOR UPDATE` };
const UPDATE: Statement = {
  name: "environment_update",
  text: `UPDATE session.environments SET name = $3, description = $4, config = $5, metadata = $6,
    updated_at = clock_timestamp() WHERE ${OF_ONE} RETURNING ${COLUMNS}`,
};
const ARCHIVE: Statement = {
  name: "environment_archive",
  text: `UPDATE session.environments SET archived_at = coalesce(archived_at, clock_timestamp()),
    updated_at = CASE WHEN archived_at IS NULL THEN clock_timestamp() ELSE updated_at END
    WHERE ${OF_ONE} RETURNING ${COLUMNS}`,
};
const DELETE: Statement = {
  name: "environment_delete",
  text: `DELETE FROM session.environments WHERE ${OF_ONE} RETURNING environment_id`,
};
const LIST = boundedPage(
  "environment_list",
  `SELECT ${COLUMNS}, octet_length(config) + octet_length(metadata) + coalesce(octet_length(description), 0) AS size
    FROM session.environments WHERE workspace_id = $1
      AND ($2::timestamptz IS NULL OR (created_at, environment_id) < ($2::timestamptz, $3::text))
      AND ($4 OR archived_at IS NULL)
    ORDER BY created_at DESC, environment_id DESC LIMIT $5`,
  "created_at DESC, environment_id DESC",
);

/** Environments in PostgreSQL. */
export class PgEnvironmentStore implements EnvironmentStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async create(
    workspaceId: string,
    environmentId: string,
    spec: EnvironmentSpec,
    request: RequestKey | null,
    signal?: AbortSignal,
  ): Promise<Created<Environment>> {
    try {
      return await this.#database.transaction(async (connection) => {
        // The request id first: a repeated create must not hear that its own name is taken.
        await claimRequestId(connection, workspaceId, request, environmentId);
        const [row] = await connection.run(INSERT, [workspaceId, environmentId, ...specValues(spec)]);
        return toEnvironment(row as Row);
      }, signal);
    } catch (error) {
      if (isUniqueViolation(error, "request_ids_pkey")) return "request_id_taken";
      if (isUniqueViolation(error, "environments_name")) return "name_taken";
      if (sqlState(error) === "23503") return "no_workspace";
      throw mapPgError(error);
    }
  }

  async get(
    environmentId: string,
    scope: string | null,
    signal?: AbortSignal,
  ): Promise<Environment | undefined> {
    const [row] = await this.#database.run(GET, [environmentId, scope], signal);
    return row && toEnvironment(row);
  }

  async list(
    query: PageQuery & { readonly includeArchived: boolean },
    signal?: AbortSignal,
  ): Promise<{ environments: Environment[]; nextPageToken: string }> {
    const key = readPageToken("environments", query.pageToken);
    const { workspaceId, includeArchived, pageSize } = query;
    const values = [workspaceId, key?.at ?? null, key?.id ?? null, includeArchived, pageSize + 1];
    const rows = await this.#database.run(LIST, values, signal);
    const { page, last } = cutPage(rows, pageSize);
    return {
      environments: page.map(toEnvironment),
      nextPageToken: last
        ? writePageToken("environments", { at: last.created_at, id: last.environment_id })
        : "",
    };
  }

  async update(
    environmentId: string,
    scope: string | null,
    decide: (current: Environment) => EnvironmentSpec,
    signal?: AbortSignal,
  ): Promise<Environment | "name_taken" | undefined> {
    try {
      return await this.#database.transaction(async (connection) => {
        const [row] = await connection.run(GET_LOCKED, [environmentId, scope]);
        if (!row) return undefined;
        const values = specValues(decide(toEnvironment(row)));
        const same = [row.name, row.description, row.config, row.metadata];
        if (values.every((value, index) => isSame(value, same[index]))) return toEnvironment(row);
        const [after] = await connection.run(UPDATE, [environmentId, scope, ...values]);
        return after && toEnvironment(after);
      }, signal);
    } catch (error) {
      if (isUniqueViolation(error, "environments_name")) return "name_taken";
      throw mapPgError(error);
    }
  }

  async archive(
    environmentId: string,
    scope: string | null,
    signal?: AbortSignal,
  ): Promise<Environment | undefined> {
    const [row] = await this.#database.run(ARCHIVE, [environmentId, scope], signal);
    return row && toEnvironment(row);
  }

  async delete(environmentId: string, scope: string | null, signal?: AbortSignal): Promise<boolean> {
    const rows = await this.#database.run(DELETE, [environmentId, scope], signal);
    return rows.length > 0;
  }
}

function specValues(spec: EnvironmentSpec): (string | null | Buffer)[] {
  const config = Buffer.from(JSON.stringify(spec.config));
  return [spec.name, spec.description, config, writeMetadata(spec.metadata)];
}

function isSame(a: string | null | Buffer | undefined, b: string | null | Buffer | undefined): boolean {
  return a instanceof Buffer && b instanceof Buffer ? a.equals(b) : a === b;
}

function toEnvironment(row: Row): Environment {
  return {
    id: row.environment_id,
    workspaceId: row.workspace_id,
    name: row.name,
    description: row.description ?? undefined,
    configJson: row.config,
    metadata: readMetadata(row.metadata),
    createTime: toTimestamp(row.created_at),
    updateTime: toTimestamp(row.updated_at),
    archiveTime: toOptionalTimestamp(row.archived_at),
  };
}
