import type { Event, SpanModelRequestEnd, SpanModelRequestStart } from "../../gen/ganglion/types/v1/event.ts";
import { PERMISSION } from "./proto-values.ts";
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

/** A model request begins: the input that it consumed joins the conversation. */
export function startSpan(state: SessionState, id: string, start: SpanModelRequestStart): void {
  state.openSpan = { id, attempt: start.attempt, blocks: [] };
  const consumed = state.queued.filter((turn) => turn.position <= start.consumedPosition);
  state.queued = state.queued.filter((turn) => turn.position > start.consumedPosition);
  state.turns.push(...consumed);
  state.isTurnOpen = true;
  state.waitingFor = [];
  state.requestsInTurn += 1;
}

/** One block of the answer; it counts only once its span ended well. */
export function takeBlock(state: SessionState, id: string, body: BlockBody): void {
  const { block, modelRequestStartId, blockIndex } = body.value;
  if (!block || state.openSpan?.id !== modelRequestStartId) return;
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
    if (end.errorReason !== "INTERRUPTED") state.failedAttempt = span.attempt;
    return;
  }
  const blocks = span.blocks.toSorted((a, b) => a.index - b.index);
  const calls = blocks.flatMap((entry) => (entry.call ? [entry.call] : []));
  state.turns.push({
    kind: "assistant",
    spanId: span.id,
    blocks: blocks.map((entry) => entry.block),
    calls,
    stopReason: end.providerStopReason,
    stopDetailsJson: end.stopDetailsJson,
  });
  for (const call of calls) state.openCalls.set(call.id, call);
  state.failedAttempt = 0;
  state.fruitlessLeases = 0;
  state.truncatedAnswers = end.providerStopReason === "max_tokens" ? state.truncatedAnswers + 1 : 0;
  state.pausedAnswers = end.providerStopReason === "pause_turn" ? state.pausedAnswers + 1 : 0;
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
