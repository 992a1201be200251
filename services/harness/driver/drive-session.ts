import { type Action, decide } from "../domain/decide.ts";
import { callModel } from "./call-model.ts";
import { closeCalls } from "./close-calls.ts";
import { compact } from "./compact.ts";
import type { DriveContext } from "./drive-context.ts";
import { failTurn } from "./fail-turn.ts";
import { idleAtHead } from "./idle-at-head.ts";
import { interruptTurn } from "./interrupt-turn.ts";
import { LeaseLost } from "./lease-lost.ts";
import { callResult, failedSpanEnd, statusRunning } from "./new-events.ts";
import { resolveTools } from "./resolve-tools.ts";
import { runCalls } from "./run-calls.ts";

/** What a driver tells about itself while it works. */
export interface DriveProgress {
  action: Action["type"] | "load";
  position: bigint;
}

/** How a driver ended: with nothing to do, with a request to let go, or with a session that is over. */
export type DriveEnd = { reason: "settled"; position: bigint } | { reason: "stopped" } | { reason: "over" };

/** Waits until the state changed after the given position, or there is no reason to wait any longer. */
export type WaitForInput = (position: bigint) => Promise<"changed" | "linger_over">;

/**
 * Drives one leased session: decide, act, append, fold, again. It stops between two actions only. All it knows is in
 * the log, so it may die anywhere and another brain goes on from there (law L1).
 */
export async function driveSession(
  ctx: DriveContext,
  progress: DriveProgress,
  waitForInput: WaitForInput,
): Promise<DriveEnd> {
  for (;;) {
    // Every step lets go at once from now on, and the next one would be the same, without end and without a pause.
    if (ctx.signal.aborted) throw new LeaseLost("the run is over", { cause: ctx.signal.reason });
    if (ctx.stop.aborted) return { reason: "stopped" };
    const { state } = ctx.log;
    const action = decide(state);
    progress.action = action.type;
    progress.position = state.position;
    if (action.type === "stop") return { reason: "over" };
    if (action.type === "wait") {
      const { position } = state;
      ctx.checkpoints.offer(state);
      if ((await waitForInput(position)) === "linger_over") return { reason: "settled", position };
      continue;
    }
    if (action.type === "call_model" && ctx.changedServers.size > 0) {
      const servers = [...ctx.changedServers];
      ctx.changedServers.clear();
      await resolveTools(ctx, servers);
      continue;
    }
    await act(ctx, action, progress);
  }
}

async function act(
  ctx: DriveContext,
  action: Exclude<Action, { type: "stop" | "wait" }>,
  progress: DriveProgress,
): Promise<void> {
  switch (action.type) {
    case "end_span":
      // A model request has no effect worth keeping: its brain died or let go, and it is made again.
      return ctx.log.append([failedSpanEnd(action.spanId, "INTERRUPTED")], ctx.traceparent);
    case "interrupt":
      return interruptTurn(ctx, action.calls);
    case "settle_calls":
      return ctx.log.append(
        [
          ...(ctx.log.state.status === "running" ? [] : [statusRunning()]),
          ...action.settlements.map(({ call, result }) => callResult(call, result)),
        ],
        ctx.traceparent,
      );
    case "run_calls":
      return closeCalls(ctx, await runCalls(ctx, action.calls), () => {
        progress.action = "call_model";
        progress.position = ctx.log.state.position;
      });
    case "resolve_tools":
      return resolveTools(ctx, action.servers);
    case "call_model":
      return callModel(ctx, action.attempt);
    case "compact":
      return compact(ctx, action.plan, action.attempt);
    case "go_idle": {
      const stopDetails = stopDetailsOf(action.stopDetailsJson);
      await idleAtHead(ctx, action.stop, {
        eventIds: action.eventIds,
        ...(stopDetails ? { stopDetails } : {}),
      });
      return;
    }
    case "fail":
      return failTurn(ctx, action.failure, action.calls);
  }
}

function stopDetailsOf(json: Uint8Array): { category: string; explanation: string } | undefined {
  if (json.length === 0) return undefined;
  try {
    const { category, explanation } = JSON.parse(new TextDecoder().decode(json)) as Record<string, unknown>;
    return {
      category: typeof category === "string" ? category : "",
      explanation: typeof explanation === "string" ? explanation : "",
    };
  } catch {
    return undefined;
  }
}
