import type { Pool } from "pg";
import type { BindingStore } from "../domain/records.ts";
import { type HandColumns, toHandColumns, toHandRules } from "./hand-columns.ts";
import { query } from "./query.ts";

interface Row extends HandColumns {
  workspace_id: string;
  vault_ids: string[];
  mcp_servers: { name: string; url: string }[];
  models: string[];
  mac: Buffer;
  lowest_epoch: string | null;
  ended: boolean | null;
}

const INSERT = {
  name: "insert_binding",
  text: `
WITH made AS (
  INSERT INTO proxy.bindings
    (session_id, workspace_id, vault_ids, mcp_servers, models, mac, networking, git_repositories)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING session_id)
SELECT proxy.raise_fence(session_id, 0, false) FROM made`,
};
const REPLACE_SERVERS = {
  name: "replace_binding_servers",
  text: "UPDATE proxy.bindings SET mcp_servers = $2, mac = $3 WHERE session_id = $1 AND mac = $4 RETURNING session_id",
};
const FIND = {
  name: "find_binding",
  text: `
SELECT b.workspace_id, b.vault_ids, b.mcp_servers, b.models, b.networking, b.git_repositories, b.mac,
       f.lowest_epoch, f.ended
FROM proxy.bindings b LEFT JOIN proxy.fences f USING (session_id) WHERE b.session_id = $1`,
};
/**
 * The commit of a harness's token does not wait for the disk: the first decision about it is durable only with it, and
 * when a crash of the database takes it before, it is worthless and its harness asks for another. A hand's is asked for
 * once, so that one waits.
 */
const INSERT_TOKEN = {
  name: "insert_token",
  text: `INSERT INTO proxy.tokens (token_hash, token_id, session_id, epoch, audience, spiffe_id, mac, hand_id)
         SELECT $1::bytea, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::bytea, $8::text
         FROM (SELECT CASE WHEN $5 <> 'hand' THEN set_config('synchronous_commit', 'off', true) END) lazily`,
};
const RAISE = { name: "raise_fence", text: "SELECT proxy.raise_fence($1, $2, $3)" };

/** Makes the store of bindings and tokens. */
export function createBindingStore(pool: Pool): BindingStore {
  return {
    insert: async (row, mac) => {
      const servers = JSON.stringify(row.mcpServers.map(({ name, url }) => ({ name, url })));
      const values = [row.sessionId, row.workspaceId, row.vaultIds, servers, row.models, mac];
      return (await query(pool, INSERT, [...values, ...toHandColumns(row)])).length === 1;
    },
    replaceServers: async (row, mac, before) => {
      const servers = JSON.stringify(row.mcpServers.map(({ name, url }) => ({ name, url })));
      return (await query(pool, REPLACE_SERVERS, [row.sessionId, servers, mac, before])).length === 1;
    },
    find: async (sessionId) => {
      const [row] = await query<Row>(pool, FIND, [sessionId]);
      return (
        row && {
          sessionId,
          workspaceId: row.workspace_id,
          vaultIds: row.vault_ids,
          mcpServers: row.mcp_servers,
          models: row.models,
          ...toHandRules(row),
          mac: row.mac,
          lowestEpoch: row.lowest_epoch === null ? null : BigInt(row.lowest_epoch),
          ended: row.ended,
        }
      );
    },
    insertToken: async (row, mac) => {
      const values = [row.tokenHash, row.tokenId, row.sessionId, row.epoch, row.audience, row.spiffeId, mac];
      await query(pool, INSERT_TOKEN, [...values, row.handId]);
    },
    raiseFence: async (sessionId, lowestEpoch, ended) => {
      await query(pool, RAISE, [sessionId, lowestEpoch, ended]);
    },
  };
}
