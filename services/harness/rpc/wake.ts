import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { isId } from "../../common/ids/new-id.ts";
import type { WakeRequest, WakeResponse } from "../../gen/ganglion/harness/v1/harness_service.ts";
import type { Harness } from "../driver/harness.ts";

/** Leases one session now. Two of them at once, here or on two harnesses, give it to one (B149). */
export async function wake(harness: Harness, { sessionId }: WakeRequest): Promise<WakeResponse> {
  if (!isId("sesn", sessionId)) {
    throw new GanglionError({
      code: "INVALID_ARGUMENT",
      reason: "INVALID_FIELD",
      message: "session_id is not a session's id",
      violations: [{ field: "session_id", description: "must be a session's id" }],
    });
  }
  try {
    return { epoch: await harness.wake(sessionId) };
  } catch (error) {
    throw inOurWords(error);
  }
}

/** What the session service said, where our contract has the same reason; else that it cannot be used. */
function inOurWords(error: unknown): unknown {
  if (!GanglionError.is(error) || error.domain === undefined) return error;
  const { code, message, metadata, retryAfterMs } = error;
  const retry = retryAfterMs === undefined ? {} : { retryAfterMs };
  switch (error.reason) {
    case "LEASE_HELD":
    case "SESSION_NOT_FOUND":
      return new GanglionError({
        code,
        reason: error.reason,
        message,
        metadata: { ...metadata },
        cause: error,
      });
    case "SESSION_ENDED":
      return new GanglionError({
        code: "NOT_FOUND",
        reason: "SESSION_NOT_FOUND",
        message: "the session is over",
        cause: error,
      });
    default:
      return new GanglionError({
        code: "UNAVAILABLE",
        reason: "LOG_UNAVAILABLE",
        message: "the session service cannot be used now",
        ...retry,
        cause: error,
      });
  }
}
