import type { Event, SessionUpdated } from "../../gen/ganglion/types/v1/event.ts";
import { isSelfHosted, parseAgentConfig } from "./agent-config.ts";
import { decide } from "./decide.ts";
import { compact } from "./fold-compaction.ts";
import { leaveSource } from "./fold-fork.ts";
import { endSpan, startSpan, takeBlock } from "./fold-span.ts";
import { CONFIRM_ALLOW, OUTCOME, PERMISSION, STOP } from "./proto-values.ts";
import { readsLog } from "./session-log-tool.ts";
import type { Call, CallResult, SessionState } from "./session-state.ts";
import { limitOf } from "./spending.ts";

/**
 * Folds one event into the state, in place, and returns it. Events must come in order of position without a hole; one
 * that was folded before changes nothing, so an append's answer and the watch may both bring it.
 */
export function fold(state: SessionState, event: Event): SessionState {
  if (event.position <= state.position) return state;
  if (event.position !== state.position + 1n) {
    throw new Error(`log has a hole: ${event.position} follows ${state.position}`);
  }
  state.position = event.position;
  // Threads other than the primary one are reserved; whoever wrote one is newer than this code.
  if (event.threadId !== "") markUnknown(state, event);
  else apply(state, event);
  return state;
}

function apply(state: SessionState, event: Event): void {
  const body = event.body;
  switch (body?.$case) {
    case "ganglionSessionCreated":
      state.status = "idle";
      state.workspaceId = body.value.workspaceId;
      state.agent = parseAgentConfig(body.value.agentJson);
      state.isSelfHosted = isSelfHosted(body.value.environmentJson);
      state.repositories = body.value.repositories;
      state.spending.price = body.value.price ?? null;
      state.spending.limit = limitOf(body.value.budget);
      if (body.value.contextStrategy !== "") {
        const { contextStrategy: name, contextOptionsJson: optionsJson } = body.value;
        state.askedStrategy = { name, optionsJson };
      }
      return;
    case "sessionUpdated":
      setBudget(state, body.value);
      if (body.value.agentJson.length === 0) return;
      state.agent = parseAgentConfig(body.value.agentJson);
      state.promise = null;
      return;
    case "ganglionSessionForked":
      leaveSource(state);
      return;
    case "ganglionLeaseAcquired":
      // A lease on a session that only waits for somebody is not one that failed to get it any further.
      if (decide(state).type !== "wait") countFruitless(state, event);
      return;

    case "userMessage":
      state.queued.push({ kind: "user", position: event.position, through: 0n, content: body.value.content });
      return;
    case "userInterrupt":
      // On a session that does nothing and waits for nothing it changes nothing.
      if (state.status === "running" || state.status === "rescheduling" || state.openCalls.size > 0) {
        state.interruptPosition = event.position;
      }
      return;
    case "userToolConfirmation": {
      const call = state.openCalls.get(body.value.toolUseId);
      if (call && call.kind !== "custom" && call.permission === PERMISSION.ASK && !call.confirmation) {
        call.confirmation = {
          isAllowed: body.value.result === CONFIRM_ALLOW,
          denyMessage: body.value.denyMessage ?? "",
        };
      }
      return;
    }
    case "userCustomToolResult":
      if (state.openCalls.get(body.value.customToolUseId)?.kind === "custom") {
        close(state, body.value.customToolUseId, clientResult(body.value));
      }
      return;
    case "userToolResult":
      if (state.isSelfHosted) {
        const call = state.openCalls.get(body.value.toolUseId);
        if (call?.kind === "built-in" && !readsLog(call)) close(state, call.id, clientResult(body.value));
      }
      return;

    case "spanModelRequestStart":
      startSpan(state, event.id, body.value);
      return;
    case "spanModelRequestEnd":
      endSpan(state, body.value);
      return;
    case "agentMessage":
    case "agentThinking":
    case "ganglionProviderBlock":
    case "agentToolUse":
    case "agentMcpToolUse":
    case "agentCustomToolUse":
      takeBlock(state, event.id, body);
      return;
    case "agentToolResult":
      close(state, body.value.toolUseId, body.value);
      state.activeMs += body.value.durationMs ?? 0n;
      return;
    case "agentMcpToolResult":
      close(state, body.value.mcpToolUseId, body.value);
      state.activeMs += body.value.durationMs ?? 0n;
      return;

    case "sessionStatusRunning":
      if (state.status === "idle") state.failedMcpServers.clear();
      state.spending.isPaused = false;
      state.status = "running";
      return;
    case "sessionStatusRescheduled":
      state.status = "rescheduling";
      return;
    case "sessionStatusIdle":
      goIdle(state, body.value.stopReason?.type ?? STOP.END_TURN, body.value.stopReason?.eventIds ?? []);
      return;
    case "sessionStatusTerminated":
    case "sessionDeleted":
      state.status = "terminated";
      return;
    case "sessionError":
      if (body.value.mcpServerName !== "") state.failedMcpServers.add(body.value.mcpServerName);
      return;

    case "ganglionHandProvisioned":
      state.hand = { id: body.value.handId, sandboxAddr: body.value.sandboxAddr };
      state.handsProvisioned += 1;
      state.sandboxAddrs.add(body.value.sandboxAddr);
      return;
    case "ganglionHandLost":
      if (state.hand?.id === body.value.handId) state.hand = null;
      return;
    case "ganglionMcpToolsResolved":
      state.mcpTools.set(body.value.mcpServerName, body.value.tools);
      state.promise = null;
      return;
    case "ganglionContextStrategySet":
      state.strategy = { name: body.value.strategy, optionsJson: body.value.optionsJson };
      state.promise = null;
      return;
    case "agentThreadContextCompacted":
      compact(state, body.value);
      return;

    case "sessionUsage":
    case "ganglionLateToolResult":
    case "ganglionModelRetryScheduled":
      return;
    case "systemMessage":
    case "userDefineOutcome":
    case "agentThreadMessageReceived":
      // Not accepted or written by this version, and they change what the model must see.
      markUnknown(state, event);
      return;
    case "agentThreadMessageSent":
    case "sessionThreadCreated":
    case "sessionThreadStatusRunning":
    case "sessionThreadStatusIdle":
    case "sessionThreadStatusRescheduled":
    case "sessionThreadStatusTerminated":
    case "spanOutcomeEvaluationStart":
    case "spanOutcomeEvaluationOngoing":
    case "spanOutcomeEvaluationEnd":
    case "workflowRunCreated":
    case "workflowRunStatusRunning":
    case "workflowRunStatusIdle":
    case "workflowRunStatusEnded":
    case "workflowRunPhaseStarted":
    case "workflowRunPhaseEnded":
    case "workflowRunError":
      return;
    default:
      markUnknown(state, event);
  }
}

function countFruitless(state: SessionState, { createTime }: Event): void {
  const atMs = createTime ? Number(createTime.seconds) * 1000 + Math.trunc(createTime.nanos / 1e6) : 0;
  if (state.fruitlessLeases === 0) state.fruitlessFromMs = atMs;
  state.fruitlessToMs = atMs;
  state.fruitlessLeases += 1;
}

function close(state: SessionState, callId: string, result: CallResult): void {
  const call = state.openCalls.get(callId);
  // A result without an open call is an orphan or a second one; neither is ever shown to the model (B005, B034).
  if (!call) return;
  const { content, isError, outcome } = result;
  call.result = { content, isError, outcome, position: state.position };
  extendTurn(state, call);
  state.openCalls.delete(callId);
  state.fruitlessLeases = 0;
}

/** A result belongs to the turn of its call, which is one of the newest. */
function extendTurn(state: SessionState, call: Call): void {
  for (let i = state.turns.length - 1; i >= 0; i--) {
    const turn = state.turns[i];
    if (turn?.kind !== "assistant" || !turn.calls.includes(call)) continue;
    turn.through = state.position;
    return;
  }
}

function clientResult(body: { content: CallResult["content"]; isError?: boolean | undefined }): CallResult {
  return { content: body.content, isError: body.isError ?? false, outcome: OUTCOME.COMPLETED };
}

function goIdle(state: SessionState, type: number, eventIds: readonly string[]): void {
  state.status = "idle";
  state.interruptPosition = 0n;
  state.requestsInTurn = 0;
  state.failedAttempt = 0;
  state.failedAtModel = 0;
  state.fruitlessLeases = 0;
  state.truncatedAnswers = 0;
  state.pausedAnswers = 0;
  state.waitingFor = type === STOP.REQUIRES_ACTION ? eventIds : [];
  state.spending.isPaused = type === STOP.BUDGET_REACHED;
  // The turn goes on where it was once the budget allows it.
  if (type === STOP.BUDGET_REACHED) return;
  if (type === STOP.REQUIRES_ACTION) return;
  state.isTurnOpen = false;
  state.isWindowExceeded = false;
  state.compactionsInRow = 0;
  state.summariesTooLong = 0;
}

/** The log's service lets input in again after that, so a brain that still may not go on has to say so anew. */
function setBudget({ spending }: SessionState, { budget, isBudgetRemoved }: SessionUpdated): void {
  if (!budget && !isBudgetRemoved) return;
  spending.limit = isBudgetRemoved ? null : limitOf(budget);
  spending.isPaused = false;
}

function markUnknown(state: SessionState, event: Event): void {
  if (!event.mayIgnore && state.unknownEventType === "") state.unknownEventType = event.type || "unknown";
}
