import type { DriveContext } from "./drive-context.ts";

/**
 * A signal that fires once a step must stop: the log holds an interrupt that is not honoured yet, the session is to be let
 * go, or its lease is lost. Dispose of it when the step is over.
 */
export function stepSignal(ctx: Pick<DriveContext, "log" | "stop" | "signal">): {
  signal: AbortSignal;
  dispose: () => void;
} {
  const interrupt = new AbortController();
  const check = (): void => {
    const { interruptPosition, status } = ctx.log.state;
    if (interruptPosition > 0n || status === "terminated") interrupt.abort();
  };
  const dispose = ctx.log.onChange(check);
  check();
  return {
    signal: AbortSignal.any([interrupt.signal, ctx.stop, ctx.signal]),
    dispose: () => void dispose(),
  };
}
