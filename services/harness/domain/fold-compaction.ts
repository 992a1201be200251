import type { AgentThreadContextCompacted } from "../../gen/ganglion/types/v1/event.ts";
import type { SessionState } from "./session-state.ts";

/**
 * Older turns left the model's window: whole ones, with their results, so that no result ever stands without its call
 * (B028). A turn with an open call stays, whatever the event says. Input that was queued then is not part of it.
 */
export function compact(
  state: SessionState,
  { throughPosition, summary }: AgentThreadContextCompacted,
): void {
  const end = state.turns.findIndex(
    (turn) =>
      turn.through > throughPosition ||
      (turn.kind === "assistant" && turn.calls.some((call) => state.openCalls.has(call.id))),
  );
  state.turns.splice(0, end < 0 ? state.turns.length : end);
  if (summary) state.summary = { position: state.position, throughPosition, block: summary };
  state.promise = null;
  state.reported = null;
  state.isWindowExceeded = false;
  state.compactionsInRow += 1;
  state.summariesTooLong = 0;
}
