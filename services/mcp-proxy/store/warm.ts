import type { Pool } from "pg";
import { query } from "./query.ts";

const FIND = {
  name: "find_used_vaults",
  text: `SELECT DISTINCT c.vault_id AS "vaultId"
         FROM proxy.bindings b JOIN proxy.credentials c ON c.vault_id = ANY (b.vault_ids)
         WHERE b.session_id = $1 AND c.version > 0 AND c.archived_at IS NULL`,
};

/** Those of a session's vaults that have a credential in use: it will need a token for them. */
export async function findUsedVaults(pool: Pool, sessionId: string): Promise<string[]> {
  return (await query<{ vaultId: string }>(pool, FIND, [sessionId])).map(({ vaultId }) => vaultId);
}
