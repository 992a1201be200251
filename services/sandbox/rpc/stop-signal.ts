import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** Reasons for which a call ends although nobody asked for its command to stop. */
const HARMLESS = ["CALLER_GONE", "CALL_OVER", "DRAINING"];

/**
 * stopSignal fires when the caller asked for the command to stop or its deadline passed. A caller that died did not
 * ask: whoever takes its session over attaches to the run (case B075, protocols §5).
 */
export function stopSignal(signal: AbortSignal): AbortSignal {
  const stop = new AbortController();
  const onAbort = () => {
    const reason: unknown = signal.reason;
    if (!(reason instanceof GanglionError && HARMLESS.includes(reason.reason))) stop.abort(reason);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return stop.signal;
}
