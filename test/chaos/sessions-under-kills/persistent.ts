import { setTimeout as pass } from "node:timers/promises";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";

const AGAIN = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "RESOURCE_EXHAUSTED"]);
const PAUSE_MS = 150;

/**
 * persistently asks until somebody answers, as a client of a mesh does whose parts die: what it asks for must be the same
 * each time. `onAgain` hears of each try that failed.
 */
export async function persistently<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
  onAgain: () => void,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!mayPass(error) || signal.aborted) throw error;
      onAgain();
      await pass(PAUSE_MS * (0.5 + Math.random()), undefined, { signal });
    }
  }
}

/** mayPass tells whether a failure says that a part is away, and not that the request is wrong. */
export function mayPass(error: unknown): boolean {
  return GanglionError.is(error) && AGAIN.has(error.code);
}
