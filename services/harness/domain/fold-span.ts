import type { Event, SpanModelRequestEnd, SpanModelRequestStart } from "../../gen/ganglion/types/v1/event.ts";
import { countFailure } from "./mesh-failures.ts";
import { PERMISSION, PURPOSE } from "./proto-values.ts";
import type { Call, SessionState } from "./session-state.ts";
import { costOf } from "./spending.ts";

/** Body of an event that carries one block of the assistant. */
export type BlockBody = Extract<
  NonNullable<Event["body"]>,
  {
    $case:
      | "agentMessage"
      | "agentThinking"
      | "ganglionProviderBlock"
      | "agentToolUse"
      | "agentMcpToolUse"
      | "agentCustomToolUse";
  }
>;

/** A model request begins: the input that it consumed joins the conversation. One for a summary consumes none. */
export function startSpan(state: SessionState, id: string, start: SpanModelRequestStart): void {
  const isCompaction = start.purpose === PURPOSE.COMPACTION;
  state.openSpan = { id, isCompaction, attempt: start.attempt, blocks: [] };
  if (isCompaction) return;
  adoptStrategy(state, start);
  if (start.stablePrefixBytes > 0n) {
    state.promise = { bytes: Number(start.stablePrefixBytes), sha256: start.stablePrefixSha256 };
  } else if (start.requestSha256.length > 0) state.promise = null;
  const consumed = state.queued.filter((turn) => turn.position <= start.consumedPosition);
  state.queued = state.queued.filter((turn) => turn.position > start.consumedPosition);
  for (const turn of consumed) state.turns.push({ ...turn, through: state.position });
  state.isTurnOpen = true;
  state.waitingFor = [];
  state.requestsInTurn += 1;
}

/** One block of the answer; it counts only once its span ended well. */
export function takeBlock(state: SessionState, id: string, body: BlockBody): void {
  const { block, modelRequestStartId, blockIndex } = body.value;
  if (!block || state.openSpan?.id !== modelRequestStartId || state.openSpan.isCompaction) return;
  const call = callOf(id, body);
  state.openSpan.blocks.push(call ? { index: blockIndex, block, call } : { index: blockIndex, block });
}

/** A model request ended. */
export function endSpan(state: SessionState, end: SpanModelRequestEnd): void {
  const span = state.openSpan;
  if (!span || span.id !== end.modelRequestStartId) return;
  state.openSpan = null;
  state.activeMs += end.durationMs;
  addUsage(state, end);
  if (end.isError) {
    // A request that was stopped has not failed: it does not use up the budget of attempts.
    if (end.errorReason !== "INTERRUPTED")
      Object.assign(state, countFailure(state, span.attempt, end.errorReason));
    if (end.errorReason === "MODEL_CONTEXT_EXCEEDED") noteTooLong(state, span.isCompaction);
    return;
  }
  state.failedAttempt = 0;
  state.failedAtModel = 0;
  state.fruitlessLeases = 0;
  if (span.isCompaction) return;
  state.isWindowExceeded = end.providerStopReason === "model_context_window_exceeded";
  if (!state.isWindowExceeded) state.compactionsInRow = 0;
  if (end.usage) state.reported = { tokens: tokensOf(end.usage), position: state.position };
  const blocks = span.blocks.toSorted((a, b) => a.index - b.index);
  const calls = blocks.flatMap((entry) => (entry.call ? [entry.call] : []));
  state.turns.push({
    kind: "assistant",
    spanId: span.id,
    position: state.position,
    through: state.position,
    blocks: blocks.map((entry) => entry.block),
    calls,
    stopReason: end.providerStopReason,
    stopDetailsJson: end.stopDetailsJson,
  });
  for (const call of calls) state.openCalls.set(call.id, call);
  state.truncatedAnswers = end.providerStopReason === "max_tokens" ? state.truncatedAnswers + 1 : 0;
  state.pausedAnswers = end.providerStopReason === "pause_turn" ? state.pausedAnswers + 1 : 0;
}

// Logs from before the strategy was recorded go on as they began.
function adoptStrategy(state: SessionState, { contextStrategy }: SpanModelRequestStart): void {
  if (state.strategy === null && contextStrategy === "full/1") {
    state.strategy = { name: contextStrategy, optionsJson: new Uint8Array(0) };
  }
}

function noteTooLong(state: SessionState, isCompaction: boolean): void {
  if (isCompaction) state.summariesTooLong += 1;
  else state.isWindowExceeded = true;
}

/** All that stood in the window when the answer was complete. */
function tokensOf(usage: NonNullable<SpanModelRequestEnd["usage"]>): number {
  const { inputTokens, cacheReadInputTokens, cacheCreationInputTokens, outputTokens } = usage;
  return Number(inputTokens + cacheReadInputTokens + cacheCreationInputTokens + outputTokens);
}

function callOf(id: string, body: BlockBody): Call | undefined {
  switch (body.$case) {
    case "agentToolUse":
      return { ...commonOf(id, body.value), kind: "built-in", serverName: "" };
    case "agentMcpToolUse":
      return { ...commonOf(id, body.value), kind: "mcp", serverName: body.value.mcpServerName };
    case "agentCustomToolUse":
      // The client runs it, so there is nothing to permit.
      return {
        ...commonOf(id, { ...body.value, permission: PERMISSION.ALLOW, policy: "" }),
        kind: "custom",
        serverName: "",
      };
    default:
      return undefined;
  }
}

function commonOf(
  id: string,
  body: Pick<Call, "name" | "providerCallId" | "inputJson" | "permission" | "policy">,
): Omit<Call, "kind" | "serverName"> {
  const { name, providerCallId, inputJson, permission, policy } = body;
  return { id, name, providerCallId, inputJson, permission, policy };
}

function addUsage(state: SessionState, { usage }: SpanModelRequestEnd): void {
  if (!usage) return;
  const { spending } = state;
  if (spending.price) spending.cost += costOf(spending.price, usage);
  const totals = state.usage;
  totals.inputTokens += usage.inputTokens;
  totals.outputTokens += usage.outputTokens;
  totals.cacheCreationInputTokens += usage.cacheCreationInputTokens;
  totals.cacheReadInputTokens += usage.cacheReadInputTokens;
  totals.cacheCreation5mInputTokens += usage.cacheCreation5mInputTokens;
  totals.cacheCreation1hInputTokens += usage.cacheCreation1hInputTokens;
}
