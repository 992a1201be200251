import { setTimeout as pass } from "node:timers/promises";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { retryDelay } from "../../../services/harness/domain/retry-delay.ts";

const AGAIN = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "RESOURCE_EXHAUSTED"]);
/** A part is back within a second or two; thousands of clients that ask meanwhile would hold it up. */
const PAUSE = { firstMs: 100, mostMs: 2_000 };

/**
 * persistently asks until somebody answers, as a client of a mesh does whose parts die: what it asks for must be the same
 * each time. `onAgain` hears of each try that failed.
 */
export async function persistently<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
  onAgain: () => void,
): Promise<T> {
  for (let failed = 1; ; failed++) {
    try {
      return await ask();
    } catch (error) {
      if (!mayPass(error) || signal.aborted) throw error;
      onAgain();
      await pauseAfter(failed, signal);
    }
  }
}

/** pauseAfter waits before one asks again, the longer the more tries have failed since the last one that did not. */
export async function pauseAfter(failed: number, signal: AbortSignal): Promise<void> {
  await pass(retryDelay(failed, undefined, Math.random(), PAUSE), undefined, { signal });
}

/** mayPass tells whether a failure says that a part is away, and not that the request is wrong. */
export function mayPass(error: unknown): boolean {
  return GanglionError.is(error) && AGAIN.has(error.code);
}
