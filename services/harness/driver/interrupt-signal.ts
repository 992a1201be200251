import type { SessionLog } from "./session-log.ts";

/** A signal that fires once the log holds an interrupt that is not honoured yet. Dispose of it when the step is over. */
export function interruptSignal(log: SessionLog): { signal: AbortSignal; dispose: () => void } {
  const controller = new AbortController();
  const check = (): void => {
    if (log.state.interruptPosition > 0n || log.state.status === "terminated") controller.abort();
  };
  const dispose = log.onChange(check);
  check();
  return { signal: controller.signal, dispose: () => void dispose() };
}
