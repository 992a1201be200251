import { readsLog } from "../domain/session-log-tool.ts";
import type { Call } from "../domain/session-state.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { callMcpTool } from "./call-mcp-tool.ts";
import type { DriveContext } from "./drive-context.ts";
import { statusRunning } from "./new-events.ts";
import { readOwnLog } from "./read-own-log.ts";
import { runInHand } from "./run-in-hand.ts";
import { stepSignal } from "./step-signal.ts";

/**
 * Runs calls at once and appends their results in call order, each as soon as all before it are in (B014). Those that
 * come last, with which the step is over, are not appended but returned. Returns early and with none when the session is
 * interrupted, which closes what is open, or given away: then what runs goes on without this brain and the next one
 * attaches to it.
 */
export async function runCalls(ctx: DriveContext, calls: readonly Call[]): Promise<NewEvent[]> {
  if (ctx.log.state.status !== "running") await ctx.log.append([statusRunning()], ctx.traceparent);
  const step = stepSignal(ctx);
  const over = new AbortController();
  const signal = AbortSignal.any([step.signal, over.signal]);
  const results: (NewEvent | undefined)[] = calls.map(() => undefined);
  try {
    const running = calls.map(async (call, i) => {
      results[i] = await (call.kind === "mcp"
        ? callMcpTool(ctx, call, signal)
        : readsLog(call)
          ? readOwnLog(ctx, call, signal)
          : runInHand(ctx, call, signal));
    });
    // One that fails fails the step; the others must not end as unhandled.
    for (const run of running) run.catch(() => {});
    let next = 0;
    while (next < calls.length) {
      await running[next];
      const ready: NewEvent[] = [];
      for (let result = results[next]; result; result = results[++next]) ready.push(result);
      // Stopped before it had a result, or nothing more to wait for.
      if (ready.length === 0 || next === calls.length) return ready;
      await ctx.log.append(ready, ctx.traceparent);
    }
    return [];
  } finally {
    over.abort();
    step.dispose();
  }
}
