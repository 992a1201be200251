import type { Pool } from "pg";
import type { ToolPinRecord, ToolPinStore } from "../domain/ports.ts";
import type { ToolPin } from "../domain/tool-pins.ts";
import { query } from "./query.ts";

const COLUMNS = `server_url AS "serverUrl", tool_name AS "toolName", sha256, definition, pinned_by AS "pinnedBy",
  pinned_at AS "pinnedAt", mac, seen_sha256 AS "seenSha256", seen_definition AS "seenDefinition", seen_at AS "seenAt"`;
const PIN = {
  name: "pin_tools",
  text: `SELECT tool_name AS "toolName", sha256, seen_sha256 AS "seenSha256", mac FROM proxy.pin_tools($1, $2, $3)`,
};
// Expressions on the right see the row as it was.
const APPROVE = {
  name: "approve_tool_pin",
  text: `UPDATE proxy.tool_pins SET sha256 = $4, mac = $5, pinned_by = $6, pinned_at = now(),
           definition = CASE WHEN sha256 = $4 THEN definition ELSE seen_definition END,
           seen_sha256 = NULL, seen_definition = NULL, seen_at = NULL
         WHERE workspace_id = $1 AND server_url = $2 AND tool_name = $3 AND (sha256 = $4 OR seen_sha256 = $4)
         RETURNING ${COLUMNS}`,
};
const LIST = {
  name: "list_tool_pins",
  text: `SELECT ${COLUMNS} FROM proxy.tool_pins
         WHERE workspace_id = $1 AND ($2 = '' OR server_url = $2) AND (NOT $3 OR seen_sha256 IS NOT NULL)
           AND (server_url, tool_name) > ($4, $5)
         ORDER BY server_url, tool_name LIMIT $6`,
};

/** Makes the store of the pins of tools. */
export function createToolPinStore(pool: Pool): ToolPinStore {
  return {
    pin: (workspaceId, serverUrl, tools) => {
      const rows = tools.map(({ name, definition, sha256, mac }) => ({
        name,
        definition,
        sha256: sha256.toString("hex"),
        mac: mac.toString("hex"),
      }));
      return query<ToolPin>(pool, PIN, [workspaceId, serverUrl, JSON.stringify(rows)]);
    },
    approve: async ({ workspaceId, serverUrl, toolName, sha256, mac, by }) => {
      const values = [workspaceId, serverUrl, toolName, sha256, mac, by];
      return (await query<ToolPinRecord>(pool, APPROVE, values))[0];
    },
    list: ({ workspaceId, serverUrl, onlyChanged, after, limit }) =>
      query<ToolPinRecord>(pool, LIST, [workspaceId, serverUrl, onlyChanged, ...after, limit]),
  };
}
