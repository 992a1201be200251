import { SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { UpstreamFailure } from "./upstream-failure.ts";

const MAX_DEPTH = 6;

/**
 * The upstream's failure that an error of the SDK stands for, if it stands for one: our own, however deep the SDK has
 * wrapped it, an HTTP status, or a wait that was too long. Nothing of the SDK's texts is kept: they quote answers.
 */
export function failureIn(error: unknown): UpstreamFailure | undefined {
  let inner = error;
  for (let depth = 0; depth < MAX_DEPTH && inner instanceof Error; depth += 1) {
    if (inner instanceof UpstreamFailure) return inner;
    if (SdkHttpError.isInstance(inner)) return failureOfStatus(inner.status);
    if (SdkError.isInstance(inner) && inner.code === SdkErrorCode.RequestTimeout) {
      return new UpstreamFailure("timeout");
    }
    const { data } = inner as { data?: { cause?: unknown } };
    inner = inner.cause ?? data?.cause;
  }
  return undefined;
}

/** What a status that is no success says. */
export function failureOfStatus(status: number): UpstreamFailure {
  if (status >= 300 && status < 400) return new UpstreamFailure("redirect", status);
  if (status === 401 || status === 403) return new UpstreamFailure("unauthorized", status);
  return new UpstreamFailure(status >= 500 ? "broken" : "refused", status);
}
