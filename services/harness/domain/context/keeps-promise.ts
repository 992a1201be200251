import type { RequestDigests } from "../request-digests.ts";
import type { SessionState } from "../session-state.ts";

/**
 * True unless the newest request of the session promised how the next one begins, nothing recorded since has made that
 * void, and this one begins otherwise.
 */
export function keepsPromise({ promise }: SessionState, { promised }: RequestDigests): boolean {
  return !promise || promised?.equals(promise.sha256) === true;
}
