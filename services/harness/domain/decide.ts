import type { StopReason_Type } from "../../gen/ganglion/types/v1/event.ts";
import { contextOf } from "./context/context-of.ts";
import { type CompactionPlan, canCompact, planCompaction } from "./context/plan-compaction.ts";
import { FAILURES, type Failure } from "./failures.ts";
import { isKept } from "./kept-turns.ts";
import { LIMITS } from "./limits.ts";
import { areAttemptsUsedUp } from "./mesh-failures.ts";
import { PERMISSION, STOP } from "./proto-values.ts";
import { readsLog } from "./session-log-tool.ts";
import type { AssistantTurn, Call, SessionState } from "./session-state.ts";
import { type Settlement, settle } from "./settle-call.ts";
import { isUsedUp } from "./spending.ts";

/** The one next thing to do. */
export type Action =
  /** The session is over, or was never begun: let go of it. */
  | { type: "stop" }
  /** Nothing to do until a client appends something. */
  | { type: "wait" }
  /** A brain died in a model request: end its span. */
  | { type: "end_span"; spanId: string }
  /** Close the open calls with an error and go idle. */
  | { type: "interrupt"; calls: Call[] }
  /** Close calls that must not run. */
  | { type: "settle_calls"; settlements: Settlement[] }
  /** Run calls, all at once. */
  | { type: "run_calls"; calls: Call[] }
  /** Find out what tools these MCP servers have. */
  | { type: "resolve_tools"; servers: string[] }
  | { type: "call_model"; attempt: number }
  /** Have older turns summarised, so that the next request fits into the window. */
  | { type: "compact"; plan: CompactionPlan; attempt: number }
  | { type: "go_idle"; stop: StopReason_Type; eventIds: string[]; stopDetailsJson: Uint8Array }
  /** Say what went wrong, close what is open, and go idle. Input that is queued is consumed. */
  | { type: "fail"; failure: Failure; calls: Call[] };

const NO_BYTES = new Uint8Array(0);

/** Says what a brain that has folded this state does next. Pure: the same state always gives the same action. */
export function decide(state: SessionState): Action {
  if (state.status === "new" || state.status === "terminated") return { type: "stop" };
  if (state.openSpan) return { type: "end_span", spanId: state.openSpan.id };
  // First of all, whatever is done with the others: nothing may look for these or run them.
  if (hasForeignCalls(state)) return decideOnCalls(state);
  if (state.interruptPosition > 0n) return { type: "interrupt", calls: [...state.openCalls.values()] };
  // Said already: what is left to do waits for the budget, and calls for their answers.
  if (state.spending.isPaused && state.openCalls.size === 0 && isUsedUp(state.spending))
    return { type: "wait" };
  const isBusy = hasWork(state) || state.openCalls.size > 0;
  if (state.unknownEventType !== "") return isBusy ? fail(state, "unknownEvent") : { type: "wait" };
  if (isBusy && isStuck(state)) return fail(state, "noProgress");
  if (state.openCalls.size > 0) return decideOnCalls(state);
  return hasWork(state) ? decideOnTurn(state) : endQuietly(state);
}

function decideOnCalls(state: SessionState): Action {
  const calls = [...state.openCalls.values()];
  const stopReasons = stopReasonsByCall(state);
  const settlements = calls.flatMap((call) => settle(call, stopReasons.get(call.id) ?? "") ?? []);
  if (settlements.length > 0) return { type: "settle_calls", settlements };

  const waiting = calls.filter((call) => waitsForClient(call, state.isSelfHosted));
  const runnable = calls.filter((call) => !waiting.includes(call));
  // A confirmed call runs once nobody has to be asked any more, so that a client that answers one by one
  // sees what is left; calls that need no answer run at once.
  const now = runnable.filter((call) => call.permission === PERMISSION.ALLOW || waiting.length === 0);
  if (now.length > 0) return { type: "run_calls", calls: now };

  const eventIds = waiting.map((call) => call.id);
  const isSaid = state.status === "idle" && sameIds(state.waitingFor, eventIds);
  if (isSaid) return { type: "wait" };
  return { type: "go_idle", stop: STOP.REQUIRES_ACTION, eventIds, stopDetailsJson: NO_BYTES };
}

function decideOnTurn(state: SessionState): Action {
  const last = state.turns.at(-1);
  const hasNewInput = state.queued.length > 0;
  if (state.isTurnOpen && last?.kind === "assistant") {
    const ending = decideOnAnswer(state, last, hasNewInput);
    if (ending) return ending;
  }
  if (areAttemptsUsedUp(state)) return fail(state, "modelFailed");
  if (isUsedUp(state.spending)) return idle(STOP.BUDGET_REACHED);
  if (state.requestsInTurn >= LIMITS.requestsInTurn) return fail(state, "turnLimit");
  const servers = [...(state.agent?.mcp.keys() ?? [])].filter(
    (server) => !state.mcpTools.has(server) && !state.failedMcpServers.has(server),
  );
  if (servers.length > 0) return { type: "resolve_tools", servers };
  if (!contextOf(state)) return fail(state, "contextStrategyInvalid");
  const attempt = state.failedAttempt + 1;
  const plan = planCompaction(state);
  if (plan === "limit") return fail(state, "compactionLimit");
  return plan ? { type: "compact", plan, attempt } : { type: "call_model", attempt };
}

/** What follows from the way an answer ended; undefined = ask the model again. Unknown ways fail closed (B027, M23). */
function decideOnAnswer(state: SessionState, turn: AssistantTurn, hasNewInput: boolean): Action | undefined {
  switch (turn.stopReason) {
    case "tool_use":
      return turn.calls.length > 0 ? undefined : fail(state, "stopUnknown");
    case "pause_turn":
      return state.pausedAnswers < LIMITS.pausedAnswers ? undefined : fail(state, "turnLimit");
    case "max_tokens":
      return turn.calls.length > 0 && state.truncatedAnswers <= LIMITS.truncatedAnswers
        ? undefined
        : fail(state, "answerTruncated");
    case "end_turn":
    case "stop_sequence":
      // Calls that a provider let pass with another reason are answered all the same.
      return turn.calls.length > 0 || hasNewInput ? undefined : idle(STOP.END_TURN);
    case "refusal":
      return idle(STOP.REFUSAL, turn.stopDetailsJson);
    case "model_context_window_exceeded":
      return canCompact(state) ? undefined : fail(state, "contextExceeded");
    default:
      return fail(state, "stopUnknown");
  }
}

function endQuietly(state: SessionState): Action {
  return state.status === "idle" ? { type: "wait" } : idle(STOP.END_TURN);
}

/** Brain after brain took this session and got it no further, for a while. */
function isStuck({ fruitlessLeases, fruitlessFromMs, fruitlessToMs }: SessionState): boolean {
  return fruitlessLeases >= LIMITS.fruitlessLeases && fruitlessToMs - fruitlessFromMs >= LIMITS.fruitlessMs;
}

function hasWork(state: SessionState): boolean {
  return state.queued.length > 0 || state.isTurnOpen;
}

function hasForeignCalls({ openCalls }: SessionState): boolean {
  for (const call of openCalls.values()) if (call.isForeign) return true;
  return false;
}

function waitsForClient(call: Call, isSelfHosted: boolean): boolean {
  if (call.kind === "custom") return true;
  if (call.permission === PERMISSION.ASK && !call.confirmation) return true;
  return call.kind === "built-in" && isSelfHosted && !readsLog(call);
}

function stopReasonsByCall(state: SessionState): Map<string, string> {
  const reasons = new Map<string, string>();
  for (const turn of state.turns) {
    // None of those has an open call.
    if (isKept(turn) || turn.kind !== "assistant") continue;
    for (const call of turn.calls) reasons.set(call.id, turn.stopReason);
  }
  return reasons;
}

function sameIds(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}

function idle(stop: StopReason_Type, stopDetailsJson: Uint8Array = NO_BYTES): Action {
  return { type: "go_idle", stop, eventIds: [], stopDetailsJson };
}

function fail(state: SessionState, name: keyof typeof FAILURES): Action {
  return { type: "fail", failure: FAILURES[name], calls: [...state.openCalls.values()] };
}
