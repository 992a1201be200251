import type { Pool } from "pg";
import type { VaultRow, VaultStore } from "../domain/records.ts";
import { query } from "./query.ts";

const COLUMNS = `vault_id AS "vaultId", workspace_id AS "workspaceId", display_name AS "displayName", metadata,
  is_system AS "isSystem", request_digest AS "requestDigest", mac,
  created_at AS "createdAt", updated_at AS "updatedAt", archived_at AS "archivedAt"`;
const INSERT = {
  name: "insert_vault",
  text: `INSERT INTO proxy.vaults (vault_id, workspace_id, display_name, metadata, is_system, request_id, request_digest, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
};
const FIND_MADE = {
  name: "find_made_vault",
  text: `SELECT ${COLUMNS} FROM proxy.vaults
         WHERE workspace_id = $1 AND ((request_id = $2 AND NOT $3) OR (is_system AND $3))`,
};
const FIND_MANY = {
  name: "find_vaults",
  text: `SELECT ${COLUMNS} FROM proxy.vaults WHERE vault_id = ANY ($1)`,
};
const LIST = {
  name: "list_vaults",
  text: `SELECT ${COLUMNS} FROM proxy.vaults
         WHERE workspace_id = $1 AND ($2::text IS NULL OR vault_id < $2) AND (archived_at IS NULL OR $4)
           AND (NOT is_system OR $5)
         ORDER BY vault_id DESC LIMIT $3`,
};

/** Makes the store of vault records. */
export function createVaultStore(pool: Pool): VaultStore {
  const findMany = (ids: readonly string[]) => query<VaultRow>(pool, FIND_MANY, [ids]);
  return {
    insertOrFind: async (vault) => {
      const { vaultId, workspaceId, displayName, metadata, isSystem, requestId, requestDigest, mac } = vault;
      const values = [vaultId, workspaceId, displayName, metadata, isSystem, requestId, requestDigest, mac];
      const [made] = await query<VaultRow>(pool, INSERT, values);
      if (made) return made;
      const [found] = await query<VaultRow>(pool, FIND_MADE, [workspaceId, requestId, isSystem]);
      if (!found) throw new Error("a vault id was drawn twice");
      return found;
    },
    find: async (vaultId) => (await findMany([vaultId]))[0],
    findMany,
    list: (o) =>
      query<VaultRow>(pool, LIST, [o.workspaceId, o.before, o.limit, o.withArchived, o.withSystem]),
  };
}
