import type { Pool } from "pg";
import type { CredentialRow } from "../domain/access.ts";
import { query } from "./query.ts";

type Row = Omit<CredentialRow, "version"> & { version: string };

const LIST = {
  name: "list_variables",
  text: `SELECT c.credential_id AS "credentialId", c.vault_id AS "vaultId", c.kind, c.url,
                c.secret_name AS "secretName", c.config, c.version, c.mac
         FROM proxy.credentials c JOIN proxy.vaults v USING (vault_id)
         WHERE c.vault_id = ANY ($2) AND v.workspace_id = $1 AND c.kind = 'environment_variable'
           AND c.version > 0 AND c.archived_at IS NULL AND v.archived_at IS NULL
         ORDER BY array_position($2, c.vault_id), c.credential_id`,
};

/** Active environment variables of a workspace's vaults, in the order of the vaults. */
export async function listVariables(
  pool: Pool,
  workspaceId: string,
  vaultIds: readonly string[],
): Promise<CredentialRow[]> {
  const rows = await query<Row>(pool, LIST, [workspaceId, vaultIds]);
  return rows.map((row) => ({ ...row, version: BigInt(row.version) }));
}
