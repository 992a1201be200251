import { LIMITS } from "../limits.ts";
import type { SessionState } from "../session-state.ts";
import { contextOf } from "./context-of.ts";
import { contextTokens, turnTokens } from "./estimate-tokens.ts";
import type { ContextOptions } from "./strategy.ts";

/** Which turns a summary is to stand for. */
export interface CompactionPlan {
  /** The turns before this index. */
  end: number;
  throughPosition: bigint;
}

/**
 * Says whether the window has to be cleared before the next request: a plan, "limit" when it would have to be and cannot,
 * undefined when it need not. A compaction that was asked for by a provider's refusal is tried a few times in a row; one
 * at the threshold once, and only if it is worth a request.
 */
export function planCompaction(state: SessionState): CompactionPlan | "limit" | undefined {
  const context = contextOf(state);
  if (!context?.strategy.isCompacting) return undefined;
  const { options } = context;
  if (state.isWindowExceeded) {
    if (state.compactionsInRow >= LIMITS.compactionsInRow) return "limit";
    if (state.summariesTooLong >= LIMITS.compactionsInRow) return "limit";
    return cut(state, endWhenExceeded(state, options)) ?? "limit";
  }
  if (state.compactionsInRow > 0 || state.summariesTooLong >= LIMITS.compactionsInRow) return undefined;
  const threshold = options.compact_at_tokens ?? 0;
  if (contextTokens(state) < threshold) return undefined;
  const end = endByBudget(state, options.keep_tokens ?? 0, state.turns.length);
  return frees(state, end, threshold / 10) ? cut(state, end) : undefined;
}

/** True when the turns before `end` take up that many tokens; no more of them are looked at than it takes. */
function frees({ turns }: SessionState, end: number, tokens: number): boolean {
  let freed = 0;
  for (let i = 0; i < end && freed < tokens; i++) freed += turnTokens(turns[i]!);
  return freed >= tokens;
}

/** True when a prompt that is too long for the window can be made shorter. */
export function canCompact(state: SessionState): boolean {
  return contextOf(state)?.strategy.isCompacting === true;
}

/** The newest whole turns that fit into the budget stay. */
function endByBudget(state: SessionState, budget: number, from: number): number {
  let end = from;
  let kept = state.turns.slice(from).reduce((sum, turn) => sum + turnTokens(turn), 0);
  while (end > 0) {
    kept += turnTokens(state.turns[end - 1]!);
    if (kept > budget) break;
    end -= 1;
  }
  return end;
}

/** Estimates were wrong, so nothing that was answered stays; input without an answer does, the first time, if it is small. */
function endWhenExceeded(state: SessionState, options: ContextOptions): number {
  const { turns } = state;
  const lastAnswer = turns.findLastIndex((turn) => turn.kind === "assistant");
  if (state.compactionsInRow > 0) return turns.length;
  const newest = turns.slice(lastAnswer + 1).reduce((sum, turn) => sum + turnTokens(turn), 0);
  return newest <= (options.keep_tokens ?? 0) ? lastAnswer + 1 : turns.length;
}

/** Whole turns only, and none apart from what joined the conversation with it (B028). */
function cut(state: SessionState, wanted: number): CompactionPlan | undefined {
  let end = wanted;
  while (end > 0 && end < state.turns.length && state.turns[end - 1]!.through === state.turns[end]!.through)
    end -= 1;
  const last = state.turns[end - 1];
  return last && { end, throughPosition: last.through };
}
