import type { Call, SessionState } from "./session-state.ts";

/** Turns that are looked at: what is older was acknowledged with earlier calls. */
const TURNS = 3;
const MOST_KEYS = 200;

/** Calls of one kind whose results the log holds, newest turns first, so that their journal need not keep them. */
export function acknowledgedKeys(state: SessionState, kind: Call["kind"]): string[] {
  const keys: string[] = [];
  let turns = 0;
  for (let i = state.turns.length - 1; i >= 0 && turns < TURNS; i--) {
    const turn = state.turns[i];
    if (turn?.kind !== "assistant" || turn.calls.length === 0) continue;
    turns += 1;
    for (const call of turn.calls) if (call.kind === kind && call.result) keys.push(call.id);
  }
  return keys.slice(0, MOST_KEYS);
}
