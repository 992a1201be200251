import { OUTCOME, PERMISSION, STOP } from "../domain/proto-values.ts";
import { readsLog } from "../domain/session-log-tool.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { notRun } from "../domain/settle-call.ts";
import { textBlock } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { finishMcp, lookUpMcpCall, mcpResult } from "./call-mcp-tool.ts";
import type { DriveContext } from "./drive-context.ts";
import { consumeInput } from "./fail-turn.ts";
import { idleAtHead } from "./idle-at-head.ts";
import { cutResult } from "./keep-result.ts";
import { hostsOf, lookUpExecution } from "./look-up-execution.ts";
import { callResult, statusRunning } from "./new-events.ts";
import { orStop } from "./or-stop.ts";
import { finish, handResult, refOf, unknown } from "./run-in-hand.ts";

/** Stops what runs, closes what is open, and goes idle, without asking the model (B005, B007). */
export async function interruptTurn(ctx: DriveContext, calls: readonly Call[]): Promise<void> {
  const { state } = ctx.log;
  const closed = await Promise.all(calls.map(async (call) => ({ call, result: await closeCall(ctx, call) })));
  // What a client answered meanwhile has its result.
  const results = closed.flatMap(({ call, result }) => (state.openCalls.has(call.id) ? [result] : []));
  // Stopped before its first request, a turn has not consumed what began it; what is queued behind a turn stays.
  const { interruptPosition: at } = state;
  const isUnbegun = !state.isTurnOpen && state.queued.some((turn) => turn.position < at);
  const taken = isUnbegun ? consumeInput(ctx, "INTERRUPTED", at) : [];
  // A session that waits for its client is idle: nothing may follow an idle until work begins again.
  const begun = state.status === "idle" ? [statusRunning()] : [];
  const before = [...begun, ...taken, ...results];
  await idleAtHead(ctx, STOP.END_TURN, { before, ...(isUnbegun ? { consumedPosition: at } : {}) });
}

async function closeCall(ctx: DriveContext, call: Call): Promise<NewEvent> {
  if (call.kind === "custom") {
    return callResult(call, unknown("The user interrupted before the client answered"));
  }
  // It has no effect, and nobody else runs it.
  if (readsLog(call)) return callResult(call, notRun(NOT_BEGUN));
  const wasAllowed = call.permission === PERMISSION.ALLOW || call.confirmation?.isAllowed === true;
  if (!wasAllowed) return callResult(call, notRun("The user interrupted before this call was allowed."));
  if (ctx.ownCalls.has(call.id) && !ctx.attempted.has(call.id)) return callResult(call, notRun(NOT_BEGUN));
  // Cancelled and asked for, but not for long: the user waits (B007).
  const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ctx.patience.interruptMs)]);
  return call.kind === "mcp" ? closeMcp(ctx, call, signal) : closeInHand(ctx, call, signal);
}

async function closeInHand(ctx: DriveContext, call: Call, signal: AbortSignal): Promise<NewEvent> {
  const ref = refOf(ctx, call, signal);
  const once = { wait: false, forMs: ctx.patience.interruptMs };
  const cancelling = hostsOf(ctx).map((address) =>
    orStop(ctx.ports.hands.cancel({ ...ref, address }), signal),
  );
  // What could be cancelled shows in what is known of the call, which is asked next.
  await Promise.allSettled(cancelling);
  const found = await lookUpExecution(ctx, ref, once);
  if (found.kind === "known") {
    const { value } = found;
    return (
      (await finish(ctx, call, value, signal)) ?? cutResult(call, handResult(value), { handId: value.handId })
    );
  }
  if (found.kind === "never" && !ctx.attempted.has(call.id)) return callResult(call, notRun(NOT_BEGUN));
  return closeBlindly(ctx, call, found.kind === "never" ? cancelled() : unknown("The user interrupted"));
}

async function closeMcp(ctx: DriveContext, call: Call, signal: AbortSignal): Promise<NewEvent> {
  try {
    const token = await orStop(ctx.token.get(), signal);
    await orStop(ctx.ports.mcp.cancel({ token, key: call.id, signal, traceparent: ctx.traceparent }), signal);
  } catch {
    // What is known of the call is asked next; whether it could be cancelled shows there.
  }
  const found = await lookUpMcpCall(ctx, call, signal, ctx.patience.interruptMs, false);
  if (found.kind === "known" || found.kind === "repeatable") {
    const { value } = found;
    const { proxyRequestId } = value;
    return (
      (await finishMcp(ctx, call, value, signal)) ?? cutResult(call, mcpResult(value), { proxyRequestId })
    );
  }
  if (found.kind === "never" && !ctx.attempted.has(call.id)) return callResult(call, notRun(NOT_BEGUN));
  return closeBlindly(ctx, call, found.kind === "never" ? cancelled() : unknown("The user interrupted"));
}

function closeBlindly(ctx: DriveContext, call: Call, result: CallResult): NewEvent {
  ctx.closedBlindly.add(call.id);
  return callResult(call, result);
}

const NOT_BEGUN = "The user interrupted before this call was run.";

function cancelled(): CallResult {
  return {
    content: [textBlock("The user interrupted this call. Please try again if it is still needed.")],
    isError: true,
    outcome: OUTCOME.CANCELLED,
  };
}
