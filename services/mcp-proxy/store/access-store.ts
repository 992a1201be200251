import type { Pool } from "pg";
import type { AccessRow, CredentialRow } from "../domain/access.ts";
import type { AccessLookup, AccessReader } from "../domain/ports.ts";
import { type HandColumns, toHandRules } from "./hand-columns.ts";
import { query } from "./query.ts";

interface Row extends HandColumns {
  token_id: string;
  session_id: string;
  epoch: string;
  audience: string;
  spiffe_id: string;
  hand_id: string;
  token_mac: Buffer;
  workspace_id: string;
  vault_ids: string[];
  mcp_servers: { name: string; url: string }[];
  models: string[];
  binding_mac: Buffer;
  lowest_epoch: string | null;
  ended: boolean | null;
  credentials: {
    id: string;
    vault: string;
    kind: CredentialRow["kind"];
    url: string;
    secretName: string;
    config: CredentialRow["config"];
    version: string;
    mac: string;
  }[];
  tool_pins: { tool: string; sha256: string; seen: string | null; mac: string }[];
}

const PINS = `
SELECT jsonb_agg(jsonb_build_object('tool', p.tool_name, 'sha256', encode(p.sha256, 'hex'),
                 'seen', encode(p.seen_sha256, 'hex'), 'mac', encode(p.mac, 'hex')) ORDER BY p.tool_name)
FROM proxy.tool_pins p
WHERE p.workspace_id = b.workspace_id AND p.server_url = (
  SELECT s ->> 'url' FROM jsonb_array_elements(b.mcp_servers) s WHERE s ->> 'name' = $4 LIMIT 1)`;

const FIND = {
  name: "find_access",
  text: `
SELECT t.token_id, t.session_id, t.epoch, t.audience, t.spiffe_id, t.hand_id, t.mac AS token_mac,
       b.workspace_id, b.vault_ids, b.mcp_servers, b.models, b.networking, b.git_repositories, b.mac AS binding_mac,
       f.lowest_epoch, f.ended,
       COALESCE((
         SELECT jsonb_agg(jsonb_build_object('id', c.credential_id, 'vault', c.vault_id, 'kind', c.kind, 'url', c.url,
                          'secretName', c.secret_name, 'config', c.config, 'version', c.version::text, 'mac', encode(c.mac, 'hex'))
                          ORDER BY array_position(b.vault_ids, c.vault_id))
         FROM proxy.credentials c JOIN proxy.vaults v USING (vault_id)
         WHERE c.vault_id = ANY (b.vault_ids) AND v.workspace_id = b.workspace_id
           AND c.kind = ANY ($2) AND c.version > 0 AND c.archived_at IS NULL AND v.archived_at IS NULL
           AND (c.url = ANY ($3) OR c.url IN (
             SELECT s ->> 'url' FROM jsonb_array_elements(b.mcp_servers) s WHERE s ->> 'name' = $4))
       ), '[]') AS credentials,
       COALESCE(CASE WHEN $5::text IS NULL THEN (${PINS}) WHEN $5 <> '' THEN (${PINS} AND p.tool_name = $5) END, '[]')
         AS tool_pins
FROM proxy.tokens t
JOIN proxy.bindings b USING (session_id)
LEFT JOIN proxy.fences f USING (session_id)
WHERE t.token_hash = $1`,
};

/** Reads a token with its binding, fence and the credentials that fit, in one statement. */
export function createAccessStore(pool: Pool): AccessReader {
  return {
    find: async (lookup: AccessLookup): Promise<AccessRow | undefined> => {
      const pinnedTool = lookup.pinnedTool === undefined ? "" : lookup.pinnedTool;
      const values = [lookup.tokenHash, lookup.kinds, lookup.urls, lookup.mcpServerName, pinnedTool];
      const [row] = await query<Row>(pool, FIND, values);
      return row && toAccess(lookup.tokenHash, row);
    },
  };
}

function toAccess(tokenHash: Buffer, row: Row): AccessRow {
  return {
    tokenHash,
    tokenId: row.token_id,
    sessionId: row.session_id,
    epoch: BigInt(row.epoch),
    audience: row.audience,
    spiffeId: row.spiffe_id,
    handId: row.hand_id,
    tokenMac: row.token_mac,
    workspaceId: row.workspace_id,
    vaultIds: row.vault_ids,
    mcpServers: row.mcp_servers,
    models: row.models,
    ...toHandRules(row),
    bindingMac: row.binding_mac,
    lowestEpoch: row.lowest_epoch === null ? null : BigInt(row.lowest_epoch),
    ended: row.ended,
    credentials: row.credentials.map((c) => ({
      credentialId: c.id,
      vaultId: c.vault,
      kind: c.kind,
      url: c.url,
      secretName: c.secretName,
      config: c.config,
      version: BigInt(c.version),
      mac: Buffer.from(c.mac, "hex"),
    })),
    toolPins: row.tool_pins.map((pin) => ({
      toolName: pin.tool,
      sha256: Buffer.from(pin.sha256, "hex"),
      seenSha256: pin.seen === null ? null : Buffer.from(pin.seen, "hex"),
      mac: Buffer.from(pin.mac, "hex"),
    })),
  };
}
