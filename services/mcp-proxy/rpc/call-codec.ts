import { Call } from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import type { StoredCall } from "../domain/call-mcp-tool.ts";
import type { Effect } from "../domain/tool-result.ts";

const OUTCOMES: Record<Effect, ToolOutcome> = {
  completed: ToolOutcome.TOOL_OUTCOME_COMPLETED,
  not_run: ToolOutcome.TOOL_OUTCOME_NOT_RUN,
  unknown: ToolOutcome.TOOL_OUTCOME_UNKNOWN,
  cancelled: ToolOutcome.TOOL_OUTCOME_CANCELLED,
};
const EFFECTS = new Map(Object.entries(OUTCOMES).map(([effect, outcome]) => [outcome, effect as Effect]));

/** A call as a message. */
export function toCall({ key, result, requestId, durationMs }: StoredCall, isReplayed: boolean): Call {
  return {
    key,
    outcome: OUTCOMES[result.effect],
    content: result.content.map(({ type, json }) => ({
      type,
      data: { $case: "json", value: Buffer.from(json) },
    })),
    structuredContentJson: Buffer.from(result.structuredContentJson),
    isError: result.isError,
    proxyRequestId: requestId,
    duration: {
      seconds: BigInt(Math.floor(durationMs / 1000)),
      nanos: Math.round(durationMs % 1000) * 1_000_000,
    },
    isReplayed,
  };
}

/** The form in which the journal keeps a call: the message itself. */
export function encodeCall(call: StoredCall): Buffer {
  return Buffer.from(Call.encode(toCall(call, false)).finish());
}

/** Reads what encodeCall wrote. */
export function decodeCall(bytes: Buffer): StoredCall {
  const call = Call.decode(bytes);
  return {
    key: call.key,
    requestId: call.proxyRequestId,
    durationMs: Number(call.duration?.seconds ?? 0n) * 1000 + (call.duration?.nanos ?? 0) / 1e6,
    result: {
      effect: EFFECTS.get(call.outcome) ?? "unknown",
      content: call.content.map(({ type, data }) => ({
        type,
        json: data?.$case === "json" ? data.value.toString("utf8") : "{}",
      })),
      structuredContentJson: call.structuredContentJson.toString("utf8"),
      isError: call.isError,
    },
  };
}
