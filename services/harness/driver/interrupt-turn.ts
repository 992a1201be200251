import { OUTCOME, PERMISSION, STOP } from "../domain/proto-values.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { notRun } from "../domain/settle-call.ts";
import { textBlock } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { finishMcp, lookUpMcpCall } from "./call-mcp-tool.ts";
import type { DriveContext } from "./drive-context.ts";
import { idleAtHead } from "./idle-at-head.ts";
import { lookUpExecution } from "./look-up-execution.ts";
import { callResult, statusRunning } from "./new-events.ts";
import { finish, refOf, unknown } from "./run-in-hand.ts";

/** Closes what is open with an error result and goes idle, without asking the model (B005, B007). */
export async function interruptTurn(ctx: DriveContext, calls: readonly Call[]): Promise<void> {
  const results = await Promise.all(calls.map((call) => closeCall(ctx, call)));
  // A session that waits for its client is idle: nothing may follow an idle until work begins again.
  const before = ctx.log.state.status === "idle" ? [statusRunning(), ...results] : results;
  await idleAtHead(ctx, STOP.END_TURN, { before });
}

async function closeCall(ctx: DriveContext, call: Call): Promise<NewEvent> {
  if (call.kind === "custom")
    return callResult(call, unknown("The user interrupted before the client answered"));
  const wasAllowed = call.permission === PERMISSION.ALLOW || call.confirmation?.isAllowed === true;
  if (!wasAllowed) return callResult(call, notRun("The user interrupted before this call was allowed."));
  // This driver cancelled it just now; the host kills what runs.
  if (ctx.attempted.has(call.id)) return callResult(call, cancelled());
  if (ctx.ownCalls.has(call.id))
    return callResult(call, notRun("The user interrupted before this call was run."));
  return closeForeign(ctx, call);
}

/** Another brain may have begun it: ask, but not for long. */
async function closeForeign(ctx: DriveContext, call: Call): Promise<NewEvent> {
  const forMs = ctx.patience.interruptMs;
  const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(forMs)]);
  if (call.kind === "mcp") {
    const found = await lookUpMcpCall(ctx, call, signal, forMs, false);
    if (found.kind === "known") return finishMcp(call, found.value);
    if (found.kind === "never")
      return callResult(call, notRun("The user interrupted before this call was run."));
    return callResult(call, unknown("The user interrupted"));
  }
  const ref = refOf(ctx, call, signal);
  const found = await lookUpExecution(ctx, ref, { wait: false, forMs });
  if (found.kind === "known") return finish(ctx, call, found.value);
  if (found.kind === "never")
    return callResult(call, notRun("The user interrupted before this call was run."));
  if (found.kind === "running") {
    await stopRunning(ctx, call, found.address, signal);
    return callResult(call, cancelled());
  }
  return callResult(call, unknown("The user interrupted"));
}

/** Attaches to a run under its key and cancels: the host kills the command and everything it started. */
async function stopRunning(
  ctx: DriveContext,
  call: Call,
  address: string,
  signal: AbortSignal,
): Promise<void> {
  const { hand } = ctx.log.state;
  if (!hand) return;
  const attached = new AbortController();
  const run = ctx.ports.hands
    .execute({
      ...refOf(ctx, call, AbortSignal.any([signal, attached.signal])),
      address,
      handId: hand.id,
      name: call.name,
      inputJson: call.inputJson,
      timeoutMs: 1,
    })
    .catch(() => {});
  // Sent before it is cancelled: a call that never left would reach nobody.
  await new Promise((resolve) => setTimeout(resolve, 50));
  attached.abort();
  await run;
}

function cancelled(): CallResult {
  return {
    content: [textBlock("The user interrupted this call. Please try again if it is still needed.")],
    isError: true,
    outcome: OUTCOME.CANCELLED,
  };
}
