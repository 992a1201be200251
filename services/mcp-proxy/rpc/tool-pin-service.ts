import { Violations } from "../../common/errors/violations.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import type { Principal } from "../../common/grpc/principal.ts";
import { type ToolPin, ToolPinServiceService } from "../../gen/ganglion/mcpproxy/v1/tool_pin_service.ts";
import { type ApproveDeps, approveToolPin } from "../domain/approve-tool-pin.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import type { ToolPinRecord } from "../domain/ports.ts";
import { checkText, cutPage, readPage, workspaceOf } from "./read-requests.ts";
import { toTimestamp } from "./to-messages.ts";

const MAX_URL = 2048;
const MAX_NAME = 128;
const DIGEST_BYTES = 32;

/** Makes ToolPinService. */
export function toolPinService(deps: ApproveDeps): Implementation {
  return implement(ToolPinServiceService, {
    listToolPins: unary(async (req, ctx) => {
      const found = new Violations();
      checkText(found, "mcp_server_url", req.mcpServerUrl, { required: false, maxLength: MAX_URL });
      const { limit, before } = readPage(found, req, (text) => readCursor(text) !== undefined, MAX_CURSOR);
      found.throwIfAny();
      const rows = await deps.pins.list({
        workspaceId: workspaceOf(ctx.principal, req.workspaceId),
        serverUrl: parseDestination(req.mcpServerUrl)?.url ?? req.mcpServerUrl,
        onlyChanged: req.onlyChanged,
        after: readCursor(before ?? "") ?? ["", ""],
        limit: limit + 1,
      });
      const { page, nextPageToken } = cutPage(rows, limit, ({ serverUrl, toolName }) =>
        JSON.stringify([serverUrl, toolName]),
      );
      return { pins: page.map(toPin), nextPageToken };
    }),
    approveToolPin: unary(async (req, ctx) => {
      const found = new Violations();
      checkText(found, "mcp_server_url", req.mcpServerUrl, { required: true, maxLength: MAX_URL });
      checkText(found, "tool_name", req.toolName, { required: true, maxLength: MAX_NAME });
      found.check(req.sha256.length === DIGEST_BYTES, "sha256", "must be 32 bytes");
      found.throwIfAny();
      const pin = await approveToolPin(deps, {
        workspaceId: workspaceOf(ctx.principal, req.workspaceId),
        serverUrl: req.mcpServerUrl,
        toolName: req.toolName,
        sha256: req.sha256,
        caller: nameOf(ctx.principal),
        callerCert: ctx.principal.peerCertSha256 ?? "",
      });
      return { pin: toPin(pin) };
    }),
  });
}

/** Room for a URL and a name, escaped and in base64. */
const MAX_CURSOR = 16_384;

function readCursor(text: string): [string, string] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isPair =
      Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");
    return isPair ? (value as [string, string]) : undefined;
  } catch {
    return undefined;
  }
}

/** Who approves: behind the gateway a key counts, not the gateway's own certificate alone. */
function nameOf({ spiffeId, keyId }: Principal): string {
  return keyId ? `${spiffeId} for ${keyId}` : spiffeId;
}

function toPin(row: ToolPinRecord): ToolPin {
  return {
    mcpServerUrl: row.serverUrl,
    toolName: row.toolName,
    sha256: row.sha256,
    definitionJson: Buffer.from(row.definition),
    pinnedBy: row.pinnedBy,
    pinTime: toTimestamp(row.pinnedAt),
    seenSha256: row.seenSha256 ?? Buffer.alloc(0),
    seenDefinitionJson: Buffer.from(row.seenDefinition ?? ""),
    seenTime: toTimestamp(row.seenAt),
  };
}
