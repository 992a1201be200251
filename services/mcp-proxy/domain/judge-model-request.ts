import { reachesOutside } from "../../common/content/reaches-outside.ts";
import { hasDuplicateKeys } from "./duplicate-keys.ts";
import { proxyError } from "./proxy-error.ts";

// Fields of the Messages API that stay between caller and model. Everything else is refused by name: mcp_servers,
// container and whatever is invented next reach outside until somebody has looked at them (case A057).
const FIELDS = new Set([
  "model",
  "messages",
  "max_tokens",
  "system",
  "tools",
  "tool_choice",
  "stream",
  "temperature",
  "top_k",
  "top_p",
  "stop_sequences",
  "metadata",
  "thinking",
  "service_tier",
  "cache_control",
  "context_management",
  "output_config",
  "output_format",
  "speed",
  "inference_geo",
]);
// Tools that the caller runs itself. The others (web_search_…, web_fetch_…, code_execution_…, mcp_toolset) run at the
// provider and have a network.
const CLIENT_TOOL = /^(custom|(bash|text_editor|computer|memory)_\d{8})$/;
// Betas that change how the model answers. Those that open a way out (mcp-client, files-api, code-execution, web-fetch,
// skills) are not among them.
const BETA =
  /^(interleaved-thinking|context-management|fine-grained-tool-streaming|token-efficient-tools|context-1m|extended-cache-ttl|output-128k|prompt-caching|max-tokens-3-5-sonnet|effort|structured-outputs|compact|fast-mode|computer-use|dev-full-thinking|model-context-window-exceeded)-\d{4}-\d{2}-\d{2}$/;

/** What the door needs to know of a request's body. */
export interface ModelRequest {
  model: string;
  isStream: boolean;
}

/** Reads and judges a body for POST /v1/messages; throws the proxyError of a denial. */
export function judgeModelRequest(body: Buffer): ModelRequest {
  const request = parse(body);
  for (const field of Object.keys(request)) if (!FIELDS.has(field)) throw featureDenied(field);
  const { model, stream, tools, messages, system } = request;
  if (typeof model !== "string" || model === "" || model.length > 255) throw invalid("model");
  if (stream !== undefined && typeof stream !== "boolean") throw invalid("stream");
  if (tools !== undefined) judgeTools(tools);
  if (reachesOutside(messages)) throw featureDenied("messages");
  if (reachesOutside(system)) throw featureDenied("system");
  return { model, isStream: stream === true };
}

/** Judges the value of the anthropic-beta header. */
export function judgeBetas(header: string | undefined): void {
  for (const beta of header?.split(",") ?? [])
    if (!BETA.test(beta.trim())) throw featureDenied("anthropic-beta");
}

function judgeTools(tools: unknown): void {
  if (!Array.isArray(tools)) throw invalid("tools");
  for (const tool of tools) {
    if (typeof tool !== "object" || tool === null) throw invalid("tools");
    const { type } = tool as { type?: unknown };
    if (type === undefined) continue;
    if (typeof type !== "string" || !CLIENT_TOOL.test(type)) throw featureDenied("tools");
  }
}

function parse(body: Buffer): Record<string, unknown> {
  let request: unknown;
  try {
    request = JSON.parse(body.toString("utf8"));
  } catch {
    throw invalid("body");
  }
  if (typeof request !== "object" || request === null || Array.isArray(request)) throw invalid("body");
  if (hasDuplicateKeys(body, request)) throw invalid("body");
  return request as Record<string, unknown>;
}

function featureDenied(field: string) {
  return proxyError("MODEL_FEATURE_NOT_ALLOWED", { metadata: { field: field.slice(0, 64) } });
}

function invalid(field: string) {
  return proxyError("INVALID_FIELD", { message: `${field} is missing or malformed`, metadata: { field } });
}
