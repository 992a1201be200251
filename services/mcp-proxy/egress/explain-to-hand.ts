import { proxyError, reasonOf } from "../domain/proxy-error.ts";
import { type ExplainedFailure, explainFailure } from "../upstream/explain-failure.ts";

/** Explains to a hand why its request came to nothing. */
export function explainToHand(error: unknown, signal: AbortSignal): ExplainedFailure {
  // Another brain took over in this very moment. The hand's token is as good as before: it may ask again.
  const isStale = reasonOf(error) === "TOKEN_STALE_EPOCH";
  return explainFailure(isStale ? proxyError("VAULT_UNAVAILABLE", { cause: error }) : error, signal);
}
