import type { Pool } from "pg";
import { MAX_PAIRS } from "../domain/credential-rules.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { VaultRow, VaultStore } from "../domain/records.ts";
import { query } from "./query.ts";

const COLUMNS = `vault_id AS "vaultId", workspace_id AS "workspaceId", display_name AS "displayName", metadata,
  is_system AS "isSystem", is_decoy AS "isDecoy", request_digest AS "requestDigest", mac,
  created_at AS "createdAt", updated_at AS "updatedAt", archived_at AS "archivedAt"`;
const INSERT = {
  name: "insert_vault",
  text: `INSERT INTO proxy.vaults (vault_id, workspace_id, display_name, metadata, is_system, is_decoy, request_id, request_digest, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
};
const FIND_MADE = {
  name: "find_made_vault",
  text: `SELECT ${COLUMNS} FROM proxy.vaults
         WHERE workspace_id = $1 AND deleted_at IS NULL AND ((request_id = $2 AND NOT $3) OR (is_system AND $3))`,
};
const FIND_MANY = {
  name: "find_vaults",
  text: `SELECT ${COLUMNS} FROM proxy.vaults WHERE vault_id = ANY ($1) AND deleted_at IS NULL`,
};
const UPDATE = {
  name: "update_vault",
  text: `UPDATE proxy.vaults SET display_name = COALESCE($2, display_name), metadata = (metadata - $4::text[]) || $3,
           updated_at = now()
         WHERE vault_id = $1 AND archived_at IS NULL
           AND (SELECT count(*) FROM jsonb_object_keys((metadata - $4::text[]) || $3)) <= ${MAX_PAIRS}
         RETURNING ${COLUMNS}`,
};
const ARCHIVE = {
  name: "archive_vault",
  text: `UPDATE proxy.vaults SET archived_at = COALESCE(archived_at, now()),
           updated_at = CASE WHEN archived_at IS NULL THEN now() ELSE updated_at END
         WHERE vault_id = $1 AND deleted_at IS NULL RETURNING ${COLUMNS}`,
};
const MARK_DELETED = {
  name: "mark_vault_deleted",
  text: `UPDATE proxy.vaults SET deleted_at = COALESCE(deleted_at, now()), archived_at = COALESCE(archived_at, now())
         WHERE vault_id = $1`,
};
const DROP_DELETED = {
  name: "drop_deleted_vaults",
  text: `DELETE FROM proxy.vaults AS v WHERE v.deleted_at IS NOT NULL
           AND NOT EXISTS (SELECT FROM proxy.credentials AS c WHERE c.vault_id = v.vault_id)`,
};
const LIST = {
  name: "list_vaults",
  text: `SELECT ${COLUMNS} FROM proxy.vaults
         WHERE workspace_id = $1 AND ($2::text IS NULL OR vault_id < $2) AND (archived_at IS NULL OR $4)
           AND (NOT is_system OR $5) AND deleted_at IS NULL
         ORDER BY vault_id DESC LIMIT $3`,
};

/** Makes the store of vault records. */
export function createVaultStore(pool: Pool): VaultStore {
  const findMany = (ids: readonly string[]) => query<VaultRow>(pool, FIND_MANY, [ids]);
  return {
    insertOrFind: async (vault) => {
      const { vaultId, workspaceId, displayName, metadata, isSystem, isDecoy, requestId } = vault;
      const named = [vaultId, workspaceId, displayName, metadata, isSystem, isDecoy];
      const values = [...named, requestId, vault.requestDigest, vault.mac];
      const [made] = await query<VaultRow>(pool, INSERT, values);
      if (made) return made;
      const [found] = await query<VaultRow>(pool, FIND_MADE, [workspaceId, requestId, isSystem]);
      // The same request made one before, which was deleted since.
      if (!found) throw proxyError("VAULT_NOT_FOUND");
      return found;
    },
    find: async (vaultId) => (await findMany([vaultId]))[0],
    findMade: async (workspaceId, requestId) =>
      (await query<VaultRow>(pool, FIND_MADE, [workspaceId, requestId, false]))[0],
    findMany,
    update: async (vaultId, { displayName, metadataSet, metadataRemove }) =>
      (await query<VaultRow>(pool, UPDATE, [vaultId, displayName ?? null, metadataSet, metadataRemove]))[0],
    archive: async (vaultId) => (await query<VaultRow>(pool, ARCHIVE, [vaultId]))[0],
    markDeleted: async (vaultId) => {
      await query(pool, MARK_DELETED, [vaultId]);
    },
    dropDeleted: async () => {
      await query(pool, DROP_DELETED, []);
    },
    list: (o) =>
      query<VaultRow>(pool, LIST, [o.workspaceId, o.before, o.limit, o.withArchived, o.withSystem]),
  };
}
