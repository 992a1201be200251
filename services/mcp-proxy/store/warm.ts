import type { Pool } from "pg";
import { query } from "./query.ts";

const FIND = {
  name: "find_used_vaults",
  text: `SELECT DISTINCT vault_id AS "vaultId" FROM proxy.credentials
         WHERE vault_id = ANY ($1) AND version > 0 AND archived_at IS NULL`,
};

/** Those of the vaults that have a credential in use: a session will need a token for them. */
export async function findUsedVaults(pool: Pool, vaultIds: readonly string[]): Promise<string[]> {
  return (await query<{ vaultId: string }>(pool, FIND, [vaultIds])).map(({ vaultId }) => vaultId);
}
