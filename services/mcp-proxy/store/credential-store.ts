import type { Pool } from "pg";
import type { CredentialRecord, CredentialStore } from "../domain/records.ts";
import { isDuplicate } from "./database-error.ts";
import { query } from "./query.ts";

const COLUMNS = `credential_id AS "credentialId", vault_id AS "vaultId", display_name AS "displayName", metadata, kind,
  url, version, is_secret_removed AS "isSecretRemoved", request_digest AS "requestDigest", mac,
  created_at AS "createdAt", updated_at AS "updatedAt", archived_at AS "archivedAt"`;
const INSERT = {
  name: "insert_credential",
  text: `INSERT INTO proxy.credentials
           (credential_id, vault_id, display_name, metadata, kind, url, request_id, request_digest, mac)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
};
const FIND_MADE = {
  name: "find_made_credential",
  text: `SELECT ${COLUMNS} FROM proxy.credentials WHERE vault_id = $1 AND request_id = $2`,
};
const FIND = {
  name: "find_credential",
  text: `SELECT ${COLUMNS} FROM proxy.credentials WHERE vault_id = $1 AND credential_id = $2 AND version > 0`,
};
const TAKEN = {
  name: "is_destination_taken",
  text: `SELECT FROM proxy.credentials
         WHERE vault_id = $1 AND kind = $2 AND url = $3 AND archived_at IS NULL AND version > 0`,
};
const SET_VERSION = {
  name: "set_credential_version",
  text: `UPDATE proxy.credentials SET version = GREATEST(version, $3), updated_at = now()
         WHERE vault_id = $1 AND credential_id = $2 AND archived_at IS NULL RETURNING ${COLUMNS}`,
};
const DROP = {
  name: "drop_unwritten_credential",
  text: "DELETE FROM proxy.credentials WHERE vault_id = $1 AND credential_id = $2 AND version = 0",
};
const ARCHIVE = {
  name: "archive_credential",
  text: `UPDATE proxy.credentials SET archived_at = COALESCE(archived_at, now()),
           updated_at = CASE WHEN archived_at IS NULL THEN now() ELSE updated_at END
         WHERE vault_id = $1 AND credential_id = $2 AND version > 0 RETURNING ${COLUMNS}`,
};
const REMOVED = {
  name: "mark_secret_removed",
  text: "UPDATE proxy.credentials SET is_secret_removed = true WHERE vault_id = $1 AND credential_id = $2",
};
const LIST = {
  name: "list_credentials",
  text: `SELECT ${COLUMNS} FROM proxy.credentials
         WHERE vault_id = $1 AND version > 0 AND ($2::text IS NULL OR credential_id < $2)
           AND (archived_at IS NULL OR $4)
         ORDER BY credential_id DESC LIMIT $3`,
};

type Row = Omit<CredentialRecord, "version"> & { version: string };

/** Makes the store of credential records. */
export function createCredentialStore(pool: Pool): CredentialStore {
  const run = async (statement: { name: string; text: string }, values: unknown[]) =>
    (await query<Row>(pool, statement, values)).map((row) => ({ ...row, version: BigInt(row.version) }));
  return {
    insertOrFind: async (c) => {
      const values = [c.credentialId, c.vaultId, c.displayName, c.metadata, c.kind, c.url];
      const [made] = await run(INSERT, [...values, c.requestId, c.requestDigest, c.mac]);
      if (made) return made;
      const [found] = await run(FIND_MADE, [c.vaultId, c.requestId]);
      if (!found) throw new Error("a credential id was drawn twice");
      return found;
    },
    find: async (vaultId, credentialId) => (await run(FIND, [vaultId, credentialId]))[0],
    isDestinationTaken: async (...values) => (await query(pool, TAKEN, values)).length > 0,
    setVersion: async (vaultId, credentialId, version) => {
      try {
        return (await run(SET_VERSION, [vaultId, credentialId, version]))[0];
      } catch (error) {
        if (isDuplicate(error, "credentials_destination")) return "taken";
        throw error;
      }
    },
    dropUnwritten: async (vaultId, credentialId) => {
      await query(pool, DROP, [vaultId, credentialId]);
    },
    archive: async (vaultId, credentialId) => (await run(ARCHIVE, [vaultId, credentialId]))[0],
    markSecretRemoved: async (vaultId, credentialId) => {
      await query(pool, REMOVED, [vaultId, credentialId]);
    },
    list: (o) => run(LIST, [o.vaultId, o.before, o.limit, o.withArchived]),
  };
}
