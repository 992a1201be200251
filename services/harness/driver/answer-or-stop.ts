import { capForLog } from "../domain/cap-output.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import type { DriveContext } from "./drive-context.ts";
import { newEvent } from "./new-events.ts";

/**
 * Waits for what a call came to, or until the step is stopped (undefined). An answer that comes after that, when its
 * call was closed without knowing it, is kept in the log as information and never shown to the model (B005).
 */
export async function answerOrStop<T>(
  ctx: DriveContext,
  call: Call,
  answer: Promise<T>,
  signal: AbortSignal,
  resultOf: (value: T) => CallResult,
): Promise<T | undefined> {
  const stopped = Promise.withResolvers<undefined>();
  const stop = (): void => stopped.resolve(undefined);
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    const first = await Promise.race([answer, stopped.promise]);
    // Only a stop gives nothing.
    if (first !== undefined) return first;
  } finally {
    signal.removeEventListener("abort", stop);
  }
  answer
    .then((value) => keepLate(ctx, call.id, resultOf(value)))
    .catch((error: unknown) => ctx.logger.debug({ err: error }, "a late answer was not kept"));
  return undefined;
}

async function keepLate(ctx: DriveContext, callId: string, result: CallResult): Promise<void> {
  await closed(ctx, callId);
  if (ctx.signal.aborted || !ctx.closedBlindly.has(callId)) return;
  const content = capForLog(result.content);
  await ctx.log.append(
    [
      newEvent({
        $case: "ganglionLateToolResult",
        value: { toolUseId: callId, content, isError: result.isError },
      }),
    ],
    ctx.traceparent,
  );
}

function closed(ctx: DriveContext, callId: string): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (ctx.log.state.openCalls.has(callId) && !ctx.signal.aborted) return;
      dispose();
      ctx.signal.removeEventListener("abort", check);
      resolve();
    };
    const dispose = ctx.log.onChange(check);
    ctx.signal.addEventListener("abort", check);
    check();
  });
}
