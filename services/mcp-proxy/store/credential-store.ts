import type { Pool } from "pg";
import { MAX_ACTIVE, MAX_PAIRS } from "../domain/credential-rules.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { CredentialRecord, CredentialStore, UnpurgedCredential } from "../domain/records.ts";
import { query } from "./query.ts";

const COLUMNS = `credential_id AS "credentialId", vault_id AS "vaultId", display_name AS "displayName", metadata, kind,
  url, secret_name AS "secretName", config, version, is_secret_removed AS "isSecretRemoved", request_digest AS "requestDigest", mac,
  created_at AS "createdAt", updated_at AS "updatedAt", archived_at AS "archivedAt"`;
const INSERT = {
  name: "insert_credential",
  text: `INSERT INTO proxy.credentials
           (credential_id, vault_id, display_name, metadata, kind, url, secret_name, config, request_id, request_digest, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
};
const FIND_MADE = {
  name: "find_made_credential",
  text: `SELECT ${COLUMNS} FROM proxy.credentials WHERE vault_id = $1 AND request_id = $2 AND deleted_at IS NULL`,
};
const FIND = {
  name: "find_credential",
  text: `SELECT ${COLUMNS} FROM proxy.credentials WHERE vault_id = $1 AND credential_id = $2 AND version > 0 AND deleted_at IS NULL`,
};
const TAKEN = {
  name: "is_key_taken",
  text: `SELECT FROM proxy.credentials
         WHERE vault_id = $1 AND (CASE kind WHEN 'mcp_oauth' THEN 'static_bearer' ELSE kind END) =
             (CASE $2 WHEN 'mcp_oauth' THEN 'static_bearer' ELSE $2 END)
           AND url = $3 AND secret_name = $4 AND archived_at IS NULL AND version > 0`,
};
const ACTIVATE = {
  name: "activate_credential",
  text: "SELECT proxy.activate_credential($1, $2, $3, $4) AS found",
};
const CHANGE = {
  name: "change_credential",
  text: `UPDATE proxy.credentials SET version = GREATEST(version, $3), config = $4, mac = $5,
           display_name = COALESCE($6, display_name), metadata = (metadata - $8::text[]) || $7, updated_at = now()
         WHERE vault_id = $1 AND credential_id = $2 AND mac = $9 AND version > 0 AND archived_at IS NULL
           AND (SELECT count(*) FROM jsonb_object_keys((metadata - $8::text[]) || $7)) <= ${MAX_PAIRS}
         RETURNING ${COLUMNS}`,
};
const DROP = {
  name: "drop_unwritten_credential",
  text: "DELETE FROM proxy.credentials WHERE vault_id = $1 AND credential_id = $2 AND version = 0",
};
const ARCHIVE = {
  name: "archive_credential",
  text: `UPDATE proxy.credentials SET archived_at = COALESCE(archived_at, now()),
           updated_at = CASE WHEN archived_at IS NULL THEN now() ELSE updated_at END
         WHERE vault_id = $1 AND credential_id = $2 AND version > 0 AND deleted_at IS NULL RETURNING ${COLUMNS}`,
};
const ARCHIVE_ALL = {
  name: "archive_credentials",
  text: `UPDATE proxy.credentials SET archived_at = COALESCE(archived_at, now()),
           deleted_at = CASE WHEN $2 THEN COALESCE(deleted_at, now()) ELSE deleted_at END,
           updated_at = CASE WHEN archived_at IS NULL THEN now() ELSE updated_at END
         WHERE vault_id = $1 AND (archived_at IS NULL OR $2)`,
};
const MARK_DELETED = {
  name: "mark_credential_deleted",
  text: `UPDATE proxy.credentials SET deleted_at = now(), archived_at = COALESCE(archived_at, now())
         WHERE vault_id = $1 AND credential_id = $2 AND version > 0 AND deleted_at IS NULL RETURNING credential_id`,
};
const DROP_DELETED = {
  name: "drop_deleted_credential",
  text: `DELETE FROM proxy.credentials
         WHERE vault_id = $1 AND credential_id = $2 AND deleted_at IS NOT NULL AND is_secret_removed`,
};
const UNPURGED = {
  name: "list_unpurged_credentials",
  text: `SELECT v.workspace_id AS "workspaceId", c.vault_id AS "vaultId", c.credential_id AS "credentialId",
           c.deleted_at IS NOT NULL AS "isDeleted", c.is_secret_removed AS "isSecretRemoved"
         FROM proxy.credentials c JOIN proxy.vaults v ON v.vault_id = c.vault_id
         WHERE c.archived_at IS NOT NULL AND (c.deleted_at IS NOT NULL OR NOT c.is_secret_removed)
           AND ($1::text IS NULL OR c.vault_id = $1)
         ORDER BY c.credential_id LIMIT $2`,
};
const REMOVED = {
  name: "mark_secret_removed",
  text: "UPDATE proxy.credentials SET is_secret_removed = true WHERE vault_id = $1 AND credential_id = $2",
};
const LIST = {
  name: "list_credentials",
  text: `SELECT ${COLUMNS} FROM proxy.credentials
         WHERE vault_id = $1 AND version > 0 AND ($2::text IS NULL OR credential_id < $2)
           AND (archived_at IS NULL OR $4) AND deleted_at IS NULL
         ORDER BY credential_id DESC LIMIT $3`,
};

type Row = Omit<CredentialRecord, "version"> & { version: string };

/** Makes the store of credential records. */
export function createCredentialStore(pool: Pool): CredentialStore {
  const run = async (statement: { name: string; text: string }, values: unknown[]) =>
    (await query<Row>(pool, statement, values)).map((row) => ({ ...row, version: BigInt(row.version) }));
  return {
    insertOrFind: async (c) => {
      const named = [c.credentialId, c.vaultId, c.displayName, c.metadata];
      const meant = [c.kind, c.url, c.secretName, c.config];
      const [made] = await run(INSERT, [...named, ...meant, c.requestId, c.requestDigest, c.mac]);
      if (made) return made;
      const [found] = await run(FIND_MADE, [c.vaultId, c.requestId]);
      // The same request made one before, which was deleted since.
      if (!found) throw proxyError("CREDENTIAL_NOT_FOUND");
      return found;
    },
    find: async (vaultId, credentialId) => (await run(FIND, [vaultId, credentialId]))[0],
    findMade: async (vaultId, requestId) => (await run(FIND_MADE, [vaultId, requestId]))[0],
    isKeyTaken: async (vaultId, { kind, url, secretName }) =>
      (await query(pool, TAKEN, [vaultId, kind, url, secretName])).length > 0,
    activate: async (vaultId, credentialId, version) => {
      const [row] = await query<{ found: string }>(pool, ACTIVATE, [
        vaultId,
        credentialId,
        version,
        MAX_ACTIVE,
      ]);
      if (row?.found !== "active") return row?.found as "vault_archived" | "full" | "taken" | "gone";
      return (await run(FIND, [vaultId, credentialId]))[0] ?? "gone";
    },
    change: async ({ vaultId, credentialId }, change, seen) => {
      const { version, config, mac, displayName, metadataSet = {}, metadataRemove = [] } = change;
      const named = [displayName ?? null, metadataSet, metadataRemove];
      return (await run(CHANGE, [vaultId, credentialId, version, config, mac, ...named, seen]))[0];
    },
    dropUnwritten: async (vaultId, credentialId) => {
      await query(pool, DROP, [vaultId, credentialId]);
    },
    archive: async (vaultId, credentialId) => (await run(ARCHIVE, [vaultId, credentialId]))[0],
    archiveAll: async (vaultId, isDeleted) => {
      await query(pool, ARCHIVE_ALL, [vaultId, isDeleted]);
    },
    markDeleted: async (vaultId, credentialId) =>
      (await query(pool, MARK_DELETED, [vaultId, credentialId])).length > 0,
    dropDeleted: async (vaultId, credentialId) => {
      await query(pool, DROP_DELETED, [vaultId, credentialId]);
    },
    listUnpurged: (vaultId, limit) => query<UnpurgedCredential>(pool, UNPURGED, [vaultId, limit]),
    markSecretRemoved: async (vaultId, credentialId) => {
      await query(pool, REMOVED, [vaultId, credentialId]);
    },
    list: (o) => run(LIST, [o.vaultId, o.before, o.limit, o.withArchived]),
  };
}
