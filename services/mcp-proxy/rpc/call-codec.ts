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

/** Leaves room for the rest of a 4 MiB message. */
const MAX_RESULT_BYTES = (4 << 20) - 65_536;

/** A call as a message; a result that no message can carry is replaced by saying so, with its size. */
export function toCall(call: StoredCall, isReplayed: boolean): Call {
  const whole = toWholeCall(call, isReplayed);
  let bytes = whole.structuredContentJson.length;
  for (const { data } of whole.content) bytes += (data?.$case === "json" ? data.value.length : 0) + 96;
  if (bytes <= MAX_RESULT_BYTES) return whole;
  const fullSizeBytes = BigInt(Call.encode(toWholeCall(call, false)).finish().length);
  const text = `The answer of ${bytes} bytes is larger than one message.`;
  const note = {
    type: "text",
    data: { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text })) },
  };
  return { ...whole, content: [note], structuredContentJson: Buffer.alloc(0), fullSizeBytes };
}

function toWholeCall({ key, result, requestId, durationMs }: StoredCall, isReplayed: boolean): Call {
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
    fullSizeBytes: 0n,
  };
}

/** The form in which the journal keeps a call: the message itself. */
export function encodeCall(call: StoredCall): Buffer {
  return Buffer.from(Call.encode(toWholeCall(call, false)).finish());
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
