import { proxyError, reasonOf } from "../domain/proxy-error.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";

/** True when a request was given up because its hand went away. */
export function isGone({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof UpstreamFailure && reason.kind === "cancelled";
}

/** What a failure means to the hand: why its request was cut, or what became of the upstream. */
export function explainFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted && !(signal.reason instanceof UpstreamFailure)) return signal.reason;
  // Another brain took over in this very moment. The hand's token is as good as before: it may ask again.
  if (reasonOf(error) === "TOKEN_STALE_EPOCH") return proxyError("VAULT_UNAVAILABLE", { cause: error });
  if (!(error instanceof UpstreamFailure)) return error;
  if (error.kind === "unreachable") return proxyError("UPSTREAM_UNREACHABLE");
  if (error.kind === "timeout") return proxyError("UPSTREAM_TIMEOUT");
  if (error.kind === "too_large") return proxyError("MESSAGE_TOO_LARGE");
  return proxyError("UPSTREAM_MALFORMED");
}
