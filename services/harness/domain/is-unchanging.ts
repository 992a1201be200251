import type { Turn } from "./session-state.ts";

/** True once nothing of a turn changes any more: all of its calls have a result. What follows from it may be remembered then. */
export function isUnchanging(turn: Turn): boolean {
  return turn.kind === "user" || turn.calls.every((call) => call.result);
}
