import type { Pool } from "pg";
import type { Writer } from "../audit/ledger.ts";
import type { CredentialConfig } from "../domain/credential-config.ts";
import type { AuthorizationStore, RenewalClaim, RenewalStore } from "../domain/oauth/oauth-ports.ts";
import { query } from "./query.ts";

const CLAIM = {
  name: "oauth_claim_renewal",
  text: "SELECT state, version, config, mac, answer FROM proxy.claim_oauth_renewal($1, $2, $3, $4, $5)",
};
const VERSION = {
  name: "oauth_find_version",
  text: "SELECT version FROM proxy.credentials WHERE credential_id = $1 AND archived_at IS NULL",
};
const KEEP = {
  name: "oauth_keep_answer",
  text: "UPDATE proxy.oauth_renewals SET answer = $3 WHERE credential_id = $1 AND request_id = $2",
};
const RELEASE = {
  name: "oauth_release_renewal",
  text: "DELETE FROM proxy.oauth_renewals WHERE credential_id = $1 AND request_id = $2 AND answer IS NULL",
};
const END = {
  name: "oauth_end_renewal",
  text: "SELECT proxy.end_oauth_renewal($1, $2, $3, $4, $5) AS is_there",
};
const BEGIN = {
  name: "oauth_begin_authorization",
  text: `WITH old AS (DELETE FROM proxy.oauth_authorizations WHERE created_at < now() - interval '1 h')
         INSERT INTO proxy.oauth_authorizations (state_hash, vault_id, pending) VALUES ($1, $2, $3)`,
};
const TAKE = {
  name: "oauth_take_authorization",
  text: `DELETE FROM proxy.oauth_authorizations WHERE state_hash = $1
         RETURNING vault_id AS "vaultId", pending, created_at AS "createdAt"`,
};
const PEEK = {
  name: "oauth_find_authorization",
  text: `SELECT vault_id AS "vaultId", pending, created_at AS "createdAt"
         FROM proxy.oauth_authorizations WHERE state_hash = $1`,
};

interface ClaimRow {
  state: "claimed" | "busy" | "moved";
  version: string | null;
  config: CredentialConfig;
  mac: Buffer;
  answer: Buffer | null;
}

/** Makes the store of renewals under way. */
export function createRenewalStore(pool: Pool, writer: Writer): RenewalStore {
  return {
    claim: async (credentialId, from, requestId): Promise<RenewalClaim> => {
      const values = [credentialId, from, requestId, writer.instance, writer.bootId];
      const [row] = await query<ClaimRow>(pool, CLAIM, values);
      if (row?.state === "claimed") {
        return { state: "claimed", answer: row.answer, config: row.config, mac: row.mac };
      }
      if (row?.state === "busy") return { state: "busy" };
      return { state: "moved", version: toVersion(row?.version) };
    },
    version: async (credentialId) => {
      const [row] = await query<{ version: string }>(pool, VERSION, [credentialId]);
      return toVersion(row?.version);
    },
    keep: async (...values) => {
      await query(pool, KEEP, values);
    },
    release: async (...values) => {
      await query(pool, RELEASE, values);
    },
    end: async (credential, version, { config, mac }) => {
      const values = [credential.credentialId, version, JSON.stringify(config), mac, credential.mac];
      const [row] = await query<{ is_there: boolean }>(pool, END, values);
      return row?.is_there === true;
    },
  };
}

/** Makes the store of authorizations that were begun; what is older than an hour goes with the next one. */
export function createAuthorizationStore(pool: Pool): AuthorizationStore {
  return {
    begin: async (stateHash, vaultId, pending) => {
      await query(pool, BEGIN, [stateHash, vaultId, pending]);
    },
    find: async (stateHash) => (await query<AuthorizationRow>(pool, PEEK, [stateHash]))[0],
    take: async (stateHash) => (await query<AuthorizationRow>(pool, TAKE, [stateHash]))[0],
  };
}

interface AuthorizationRow {
  vaultId: string;
  pending: Buffer;
  createdAt: Date;
}

function toVersion(text: string | null | undefined): bigint | null {
  return text === null || text === undefined || text === "0" ? null : BigInt(text);
}
