import type { RequestIds } from "../ports/registry-stores.ts";
import type { RequestKey } from "../ports/session-store.ts";
import type { Connection, Database, Statement } from "./database.ts";

const FIND: Statement = {
  name: "request_find",
  text: `SELECT request_digest, resource_id FROM session.request_ids
    WHERE workspace_id = $1 AND method = $2 AND request_id = $3`,
};
const CLAIM: Statement = {
  name: "request_claim",
  text: `INSERT INTO session.request_ids (workspace_id, method, request_id, request_digest, resource_id)
    VALUES ($1, $2, $3, $4, $5)`,
};

/** Request ids in PostgreSQL. */
export class PgRequestIds implements RequestIds {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async find(workspaceId: string, method: string, requestId: string, signal?: AbortSignal) {
    const [row] = await this.#database.run(FIND, [workspaceId, method, requestId], signal);
    return row && { digest: row.request_digest as Uint8Array, resourceId: row.resource_id as string };
  }
}

/** Claims a request id in the transaction of its create; a taken one breaks request_ids_pkey. */
export async function claimRequestId(
  connection: Connection,
  workspaceId: string,
  request: RequestKey | null,
  resourceId: string,
): Promise<void> {
  if (!request) return;
  await connection.run(CLAIM, [workspaceId, request.method, request.requestId, request.digest, resourceId]);
}
