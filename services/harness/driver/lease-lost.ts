import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** The session is somebody else's now, or nobody's: stop at once and write nothing more (law L3). */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

const LOST = new Set([
  "STALE_EPOCH",
  "SESSION_ENDED",
  "SESSION_NOT_FOUND",
  "TOKEN_STALE_EPOCH",
  "LEASE_NOT_CONFIRMED",
]);

/** True when an error says that this brain must not drive the session any more, whichever part said so. */
export function saysLeaseIsLost(error: unknown): boolean {
  return error instanceof LeaseLost || (GanglionError.is(error) && LOST.has(error.reason));
}
