import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import { type Implementation, implement, serverStream, unary } from "../../common/grpc/handlers.ts";
import { singleMetadata } from "../../common/grpc/single-metadata.ts";
import {
  type CallToolRequest,
  McpProxyServiceService,
  type ReadCallRequest,
  type WatchCallRequest,
} from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import { callMcpTool, type ToolCallDeps } from "../domain/call-mcp-tool.ts";
import { cancelMcpCall } from "../domain/cancel-mcp-call.ts";
import { isCredentialShaped } from "../domain/credential-shaped.ts";
import { getMcpCall } from "../domain/get-mcp-call.ts";
import { isTooDeep } from "../domain/json-bytes.ts";
import { listMcpTools } from "../domain/list-mcp-tools.ts";
import { readMcpCall } from "../domain/read-mcp-call.ts";
import { watchMcpCall } from "../domain/watch-mcp-call.ts";
import { toCall } from "./call-codec.ts";
import { checkText } from "./read-requests.ts";

const TOKEN_KEY = "ganglion-session-token";
const MAX_INPUT_BYTES = 2 << 20;
const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
const KEY = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_KEYS = 1000;
/** Size of one piece of a call that is larger than a message. */
const PIECE_BYTES = 1 << 20;

/** Makes McpProxyService. */
export function mcpProxyService(deps: ToolCallDeps): Implementation {
  return implement(McpProxyServiceService, {
    listTools: unary(async (req, ctx) => {
      const found = new Violations();
      checkText(found, "mcp_server_name", req.mcpServerName, { required: true, maxLength: 255 });
      found.throwIfAny();
      const asked = { ...callerOf(ctx), serverName: req.mcpServerName };
      const { requestId, tools } = await listMcpTools(deps, asked, ctx.signal);
      ctx.note({ proxy_request_id: requestId });
      return {
        tools: tools.map((tool) => ({
          name: tool.name,
          description: tool.description,
          inputSchemaJson: Buffer.from(tool.inputSchemaJson),
          outputSchemaJson: Buffer.from(tool.outputSchemaJson),
          annotationsJson: Buffer.from(tool.annotationsJson),
          pinSha256: tool.pin.sha256,
        })),
        proxyRequestId: requestId,
      };
    }),
    callTool: unary(async (req, ctx) => {
      const { inputJson, timeoutMs } = readCallTool(req);
      const asked = {
        ...callerOf(ctx),
        serverName: req.mcpServerName,
        name: req.name,
        key: req.key,
        acknowledgedKeys: req.acknowledgedKeys,
      };
      const made = await callMcpTool(deps, { ...asked, inputJson, timeoutMs }, ctx.signal);
      const { call, isReplayed, areToolsChanged } = made;
      ctx.note({ proxy_request_id: call.requestId });
      return { call: toCall(call, isReplayed), toolsChanged: areToolsChanged };
    }),
    cancelCall: unary(async (req, ctx) => {
      const found = new Violations();
      checkKey(found, req.key);
      found.throwIfAny();
      await cancelMcpCall(deps, { ...callerOf(ctx), key: req.key });
      return {};
    }),
    getCall: unary(async (req, ctx) => {
      const found = new Violations();
      checkKey(found, req.key);
      found.throwIfAny();
      const known = await getMcpCall(deps, { ...callerOf(ctx), key: req.key });
      const { call, isRunning, mayRepeat, requestId } = known;
      if (call) return { call: toCall(call, true), isRunning, mayRepeat };
      const unfinished = {
        key: req.key,
        outcome: ToolOutcome.TOOL_OUTCOME_UNSPECIFIED,
        content: [],
        structuredContentJson: Buffer.alloc(0),
        isError: false,
        proxyRequestId: requestId,
        duration: undefined,
        isReplayed: false,
        fullSizeBytes: 0n,
      };
      return { call: unfinished, isRunning, mayRepeat };
    }),
    readCall: serverStream(async function* (req: ReadCallRequest, ctx) {
      const found = new Violations();
      checkKey(found, req.key);
      found.throwIfAny();
      const bytes = await readMcpCall(deps, { ...callerOf(ctx), key: req.key });
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        yield { data: bytes.subarray(at, at + PIECE_BYTES) };
      }
    }),
    watchCall: serverStream(async function* (req: WatchCallRequest, ctx) {
      const found = new Violations();
      checkKey(found, req.key);
      found.throwIfAny();
      yield* watchMcpCall(deps, { ...callerOf(ctx), key: req.key }, ctx.signal);
    }),
  });
}

function checkKey(found: Violations, key: string): void {
  found.string("key", key, {
    required: true,
    pattern: KEY,
    patternMeans: "1 to 64 characters [A-Za-z0-9_-]",
  });
}

function callerOf(ctx: CallContext): {
  token: string | undefined;
  caller: string;
  callerCert: string;
  ownCredential?: string;
} {
  const ownCredential = Object.keys(ctx.metadata.getMap()).find(
    (key) => key !== TOKEN_KEY && !key.startsWith("ganglion-") && isCredentialShaped(key),
  );
  return {
    token: singleMetadata(ctx.metadata, TOKEN_KEY),
    caller: ctx.principal.spiffeId,
    callerCert: ctx.principal.peerCertSha256 ?? "",
    ...(ownCredential ? { ownCredential } : {}),
  };
}

function readCallTool(req: CallToolRequest): { inputJson: string; timeoutMs: number } {
  const found = new Violations();
  checkText(found, "mcp_server_name", req.mcpServerName, { required: true, maxLength: 255 });
  checkText(found, "name", req.name, { required: true, maxLength: 128 });
  checkKey(found, req.key);
  found.bytes("input_json", req.inputJson, { required: true, maxBytes: MAX_INPUT_BYTES });
  const inputJson = req.inputJson.toString("utf8");
  if (req.inputJson.length > 0 && req.inputJson.length <= MAX_INPUT_BYTES) {
    const isFit = isObject(inputJson, req.inputJson) && !isTooDeep(req.inputJson);
    found.check(isFit, "input_json", "must be one JSON object in UTF-8, nested at most 256 levels deep");
  }
  const areKeys =
    req.acknowledgedKeys.length <= MAX_KEYS && req.acknowledgedKeys.every((key) => KEY.test(key));
  found.check(areKeys, "acknowledged_keys", "must be at most 1,000 keys");
  const { timeout } = req;
  const timeoutMs = timeout
    ? Number(timeout.seconds) * 1000 + Math.round(timeout.nanos / 1e6)
    : DEFAULT_TIMEOUT_MS;
  found.check(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS, "timeout", "must be from 1 ms to 600 s");
  found.throwIfAny();
  return { inputJson, timeoutMs };
}

function isObject(text: string, bytes: Buffer): boolean {
  if (!Buffer.from(text).equals(bytes)) return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
