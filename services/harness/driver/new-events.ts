import { newId } from "../../common/ids/new-id.ts";
import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import type {
  SessionError_RetryStatus,
  SpanModelRequestEnd,
  SpanModelRequestStart,
  StopDetails,
  StopReason_Type,
} from "../../gen/ganglion/types/v1/event.ts";
import { capForLog } from "../domain/cap-output.ts";
import { chosenStrategy } from "../domain/context/context-of.ts";
import type { Failure } from "../domain/failures.ts";
import type { Call, CallResult, SessionState } from "../domain/session-state.ts";
import type { NewEvent } from "../ports/event-log.ts";

/** Gives a body an id. */
export function newEvent(body: NewEvent["body"]): NewEvent {
  return { id: newId("sevt"), body };
}

/** The session works. */
export function statusRunning(): NewEvent {
  return newEvent({ $case: "sessionStatusRunning", value: {} });
}

/** What a call came to; the same for calls that ran and for calls that were closed. */
export interface ResultDetails {
  handId?: string;
  proxyRequestId?: string;
  durationMs?: bigint | undefined;
  /** The whole of an output that is cut. */
  fullOutput?: PayloadRef;
}

/** The one result of a call, as the event that its kind needs. */
export function callResult(call: Call, result: CallResult, details: ResultDetails = {}): NewEvent {
  const { isError, outcome } = result;
  const common = {
    content: capForLog(result.content),
    isError,
    outcome,
    durationMs: details.durationMs,
    fullOutput: details.fullOutput,
  };
  return call.kind === "mcp"
    ? newEvent({
        $case: "agentMcpToolResult",
        value: { ...common, mcpToolUseId: call.id, proxyRequestId: details.proxyRequestId ?? "" },
      })
    : newEvent({
        $case: "agentToolResult",
        value: { ...common, toolUseId: call.id, handId: details.handId ?? "" },
      });
}

/** Totals, then idle: the last events of a turn. */
export function idleEvents(
  state: SessionState,
  type: StopReason_Type,
  eventIds: readonly string[] = [],
  stopDetails?: StopDetails,
): NewEvent[] {
  return [
    newEvent({
      $case: "sessionUsage",
      value: {
        usage: { ...state.usage, speed: "" },
        activeMs: state.activeMs,
        listCostMicrocents: state.spending.price ? state.spending.cost : undefined,
      },
    }),
    newEvent({
      $case: "sessionStatusIdle",
      value: { stopReason: { type, eventIds: [...eventIds] }, stopDetails },
    }),
  ];
}

/** A problem, told with the part at fault (law L8). */
export function sessionError(
  failure: Failure,
  retryStatus: SessionError_RetryStatus,
  concerned: { mcpServerName?: string; repositoryUrl?: string } = {},
): NewEvent {
  const { errorType, message, part, reason } = failure;
  const { mcpServerName = "", repositoryUrl = "" } = concerned;
  return newEvent({
    $case: "sessionError",
    value: { errorType, message, part, reason, retryStatus, mcpServerName, repositoryUrl },
  });
}

/** What a request is; one that is never sent has neither a digest nor a promise. */
export type RequestFacts = Pick<SpanModelRequestStart, "purpose" | "consumedPosition" | "attempt"> &
  Partial<Pick<SpanModelRequestStart, "requestSha256" | "stablePrefixBytes" | "stablePrefixSha256">>;

/** The beginning of a model request. */
export function spanStart(state: SessionState, facts: RequestFacts): NewEvent {
  return newEvent({
    $case: "spanModelRequestStart",
    value: {
      requestSha256: Buffer.alloc(0),
      stablePrefixBytes: 0n,
      stablePrefixSha256: Buffer.alloc(0),
      ...facts,
      model: state.agent?.model.id || "unknown",
      contextStrategy: chosenStrategy(state).name,
    },
  });
}

/** The end of a model request that gave no answer. */
export function failedSpanEnd(
  spanId: string,
  errorReason: string,
  facts: Partial<Pick<SpanModelRequestEnd, "usage" | "upstream" | "firstTokenMs" | "durationMs">> = {},
): NewEvent {
  return newEvent({
    $case: "spanModelRequestEnd",
    value: {
      modelRequestStartId: spanId,
      isError: true,
      usage: facts.usage,
      providerStopReason: "",
      providerMessageId: "",
      upstream: facts.upstream ?? "",
      firstTokenMs: facts.firstTokenMs,
      durationMs: facts.durationMs ?? 0n,
      errorReason,
      stopDetailsJson: Buffer.alloc(0),
    },
  });
}
