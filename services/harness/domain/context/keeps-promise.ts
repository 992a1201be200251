import type { SessionState } from "../session-state.ts";
import { sha256 } from "../sha256.ts";

/**
 * True unless the newest request of the session promised how the next one begins, nothing recorded since has made that
 * void, and this one begins otherwise.
 */
export function keepsPromise({ promise }: SessionState, stablePrefix: Uint8Array | null): boolean {
  if (!promise) return true;
  if (!stablePrefix || stablePrefix.length < promise.bytes) return false;
  return sha256(stablePrefix.subarray(0, promise.bytes)).equals(promise.sha256);
}
