import type { ContentBlock, ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import type { Event, StopDetails, StopReason } from "../../gen/ganglion/types/v1/event.ts";
import { budgetToJson, listCostToJson } from "./money.ts";
import { RawJson } from "./raw-json.ts";
import { usageToJson } from "./resource-to-json.ts";
import { toRfc3339 } from "./timestamps.ts";

type Json = Record<string, unknown>;
type Body = NonNullable<Event["body"]>;

const PERMISSIONS = [undefined, "allow", "ask", "deny"] as const;
const STOP_REASONS = [
  "end_turn",
  "end_turn",
  "requires_action",
  "retries_exhausted",
  "budget_reached",
  "refusal",
] as const;
const RETRY_STATUSES = ["exhausted", "retrying", "exhausted", "terminal"] as const;
/** Taken at once; other client events wait until a model request has read them. */
const TAKEN_ON_RECEIPT = new Set(["user.custom_tool_result", "user.tool_result", "user.define_outcome"]);

/**
 * eventToJson writes an event as the REST API shows it; undefined for what it does not show. `takenAt` is when a model
 * request read it; it counts for events of clients only.
 */
export function eventToJson(event: Event, takenAt: string | null): Json | undefined {
  if (!event.body || !isShown(event)) return undefined;
  const fields = fieldsOf(event.body);
  if (!fields) return undefined;
  const waits = isClientEvent(event.type) && !TAKEN_ON_RECEIPT.has(event.type);
  return {
    id: event.id,
    type: event.type,
    ...fields,
    processed_at: waits ? takenAt : toRfc3339(event.createTime),
  };
}

/** isClientEvent says whether a client sent an event of that type. */
export function isClientEvent(type: string): boolean {
  return type.startsWith("user.") || type === "system.message";
}

/** isShown says whether the REST API shows an event at all: our own types and empty texts stay inside. */
export function isShown(event: Event): boolean {
  if (event.type.startsWith("ganglion.") || event.body?.$case === "open") return false;
  return !(event.body?.$case === "agentMessage" && isEmptyText(event.body.value.block));
}

function fieldsOf(body: Body): Json | undefined {
  const { value } = body;
  switch (body.$case) {
    case "userMessage":
    case "systemMessage":
      return { content: blocks(body.value.content) };
    case "userInterrupt":
      return body.value.sessionThreadId ? { session_thread_id: body.value.sessionThreadId } : {};
    case "userToolConfirmation":
      return {
        tool_use_id: body.value.toolUseId,
        result: body.value.result === 1 ? "allow" : "deny",
        ...(body.value.denyMessage === undefined ? {} : { deny_message: body.value.denyMessage }),
      };
    case "userCustomToolResult":
      return {
        custom_tool_use_id: body.value.customToolUseId,
        ...result(body.value.content, body.value.isError),
      };
    case "userToolResult":
    case "agentToolResult":
      return { tool_use_id: body.value.toolUseId, ...result(body.value.content, body.value.isError) };
    case "agentMcpToolResult":
      return { mcp_tool_use_id: body.value.mcpToolUseId, ...result(body.value.content, body.value.isError) };
    case "agentMessage":
      return { content: blocks(body.value.block ? [body.value.block] : []) };
    case "agentToolUse":
      return toolUse(body.value);
    case "agentMcpToolUse":
      return { mcp_server_name: body.value.mcpServerName, ...toolUse(body.value) };
    case "agentCustomToolUse":
      return { name: body.value.name, input: new RawJson(body.value.inputJson) };
    case "sessionStatusIdle":
      return idle(body.value);
    case "sessionThreadStatusIdle":
      return { ...thread(body.value), ...idle(body.value) };
    case "sessionThreadStatusRunning":
    case "sessionThreadStatusRescheduled":
    case "sessionThreadStatusTerminated":
      return thread(body.value);
    case "sessionUpdated":
      return {
        ...(body.value.title === undefined
          ? {}
          : { title: body.value.title === "" ? null : body.value.title }),
        // Metadata that were cleared are left out, as the API does.
        ...(hasEntries(body.value.metadata?.entries) ? { metadata: body.value.metadata?.entries } : {}),
        ...(body.value.agentJson.length > 0 ? { agent: new RawJson(body.value.agentJson) } : {}),
        ...(body.value.budget || body.value.isBudgetRemoved
          ? { budget: budgetToJson(body.value.budget) }
          : {}),
      };
    case "sessionUsage":
      return {
        usage: {
          ...usageToJson(body.value.usage),
          active_seconds: Number(body.value.activeMs) / 1000,
          list_cost: listCostToJson(body.value.listCostMicrocents),
        },
      };
    case "sessionError":
      return {
        error: {
          type: body.value.errorType,
          message: body.value.message,
          retry_status: { type: RETRY_STATUSES[body.value.retryStatus] ?? "exhausted" },
          ...(body.value.mcpServerName ? { mcp_server_name: body.value.mcpServerName } : {}),
          ...(body.value.repositoryUrl ? { repository_url: body.value.repositoryUrl } : {}),
        },
      };
    case "spanModelRequestEnd":
      return {
        model_request_start_id: body.value.modelRequestStartId,
        is_error: body.value.isError,
        model_usage: modelUsage(body.value.usage),
      };
    case "agentThinking":
    case "agentThreadContextCompacted":
    case "sessionStatusRunning":
    case "sessionStatusRescheduled":
    case "sessionStatusTerminated":
    case "sessionDeleted":
    case "spanModelRequestStart":
      return {};
    default:
      // Threads, outcomes and workflows do not exist yet; an event nobody can describe is not shown half.
      void value;
      return undefined;
  }
}

function hasEntries(entries: Record<string, string> | undefined): boolean {
  return entries !== undefined && Object.keys(entries).length > 0;
}

interface ShownCall {
  name: string;
  inputJson: Uint8Array;
  permission: number;
  policy: string;
  evaluationReason: string;
}

function toolUse(call: ShownCall): Json {
  const permission = PERMISSIONS[call.permission];
  const evaluation = evaluationOf(call, permission);
  return {
    name: call.name,
    input: new RawJson(call.inputJson),
    ...(permission ? { evaluated_permission: permission } : {}),
    ...(evaluation ? { evaluation } : {}),
  };
}

/** What the policy came to; absent when the call was refused before any policy was asked. */
function evaluationOf(call: ShownCall, permission: string | undefined): Json | undefined {
  if (call.policy === "always_allow" || call.policy === "always_ask") return { type: call.policy };
  if (call.policy !== "auto" || !permission) return undefined;
  if (permission === "allow") return { type: "auto", evaluated_permission: { type: permission } };
  const isRisky = permission === "deny" && call.evaluationReason === "high_risk";
  const reason = isRisky ? "high_risk" : "indeterminate";
  return { type: "auto", evaluated_permission: { type: permission, reason_code: reason } };
}

function result(content: readonly ContentBlock[], isError: boolean | undefined): Json {
  return { content: blocks(content), is_error: isError ?? false };
}

function thread(value: { sessionThreadId: string; agentName: string }): Json {
  return { session_thread_id: value.sessionThreadId, agent_name: value.agentName };
}

function idle({
  stopReason,
  stopDetails,
}: {
  stopReason: StopReason | undefined;
  stopDetails: StopDetails | undefined;
}): Json {
  const type = STOP_REASONS[stopReason?.type ?? 0] ?? "end_turn";
  return {
    stop_reason: { type, ...(type === "requires_action" ? { event_ids: stopReason?.eventIds ?? [] } : {}) },
    stop_details: stopDetails
      ? {
          type: "refusal",
          category: stopDetails.category || null,
          explanation: stopDetails.explanation || null,
        }
      : null,
  };
}

function modelUsage(usage: ModelUsage | undefined): Json {
  return {
    input_tokens: Number(usage?.inputTokens ?? 0n),
    output_tokens: Number(usage?.outputTokens ?? 0n),
    cache_creation_input_tokens: Number(usage?.cacheCreationInputTokens ?? 0n),
    cache_read_input_tokens: Number(usage?.cacheReadInputTokens ?? 0n),
    ...(usage?.speed ? { speed: usage.speed } : {}),
  };
}

function blocks(content: readonly ContentBlock[]): unknown[] {
  return content.map((block) => {
    if (block.data?.$case === "json") return new RawJson(block.data.value);
    // Too large for an event: the excerpt says what it was.
    const payload = block.data?.value;
    return {
      type: "text",
      text: `[${block.type}, ${payload?.sizeBytes ?? 0} bytes] ${payload?.excerpt ?? ""}`.trim(),
    };
  });
}

function isEmptyText(block: ContentBlock | undefined): boolean {
  if (block?.type !== "text" || block.data?.$case !== "json") return false;
  try {
    return (JSON.parse(Buffer.from(block.data.value).toString("utf8")) as { text?: unknown }).text === "";
  } catch {
    return false;
  }
}
