import type { AgentThreadContextCompacted } from "../../gen/ganglion/types/v1/event.ts";
import { keptPrefix } from "./kept-turns.ts";
import type { SessionState, Turn } from "./session-state.ts";

/**
 * Older turns left the model's window: whole ones, with their results, so that no result ever stands without its call
 * (B028). A turn with an open call stays, whatever the event says. Input that was queued then is not part of it.
 */
export function compact(
  state: SessionState,
  { throughPosition, summary }: AgentThreadContextCompacted,
): void {
  let end = keptBefore(state.turns, throughPosition);
  while (end < state.turns.length && !stays(state, state.turns[end]!, throughPosition)) end += 1;
  state.turns.splice(0, end);
  if (summary) state.summary = { position: state.position, throughPosition, block: summary };
  state.promise = null;
  state.reported = null;
  state.isWindowExceeded = false;
  state.compactionsInRow += 1;
  state.summariesTooLong = 0;
}

function stays({ openCalls }: SessionState, turn: Turn, position: bigint): boolean {
  if (turn.through > position) return true;
  return turn.kind === "assistant" && turn.calls.some((call) => openCalls.has(call.id));
}

/** How many of the kept turns do not go beyond a position. Few are looked at: none has an open call, and they are in order. */
function keptBefore(turns: readonly Turn[], position: bigint): number {
  let [from, to] = [0, keptPrefix(turns)?.count ?? 0];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (turns[middle]!.through <= position) from = middle + 1;
    else to = middle;
  }
  return from;
}
