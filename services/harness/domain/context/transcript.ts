import { joinEnds } from "../cap-text.ts";
import { isUnchanging } from "../is-unchanging.ts";
import { keptPrefix } from "../kept-turns.ts";
import type { Turn } from "../session-state.ts";
import { renderTurn } from "./render-turn.ts";

const BETWEEN = "\n\n";
/** Longest text of one entry's parts. */
const ENTRY_CHARS = 4000;

/**
 * The first `end` turns as quoted text behind what comes before them, cut in its middle to `limit` characters as capText()
 * would cut it. What is cut out is not written at all.
 */
export function transcriptOf(
  before: readonly string[],
  turns: readonly Turn[],
  end: number,
  limit: number,
): string {
  const count = before.length + end;
  const entry = (i: number): string => before[i] ?? entryOf(turns[i - before.length]!);
  const chars = before.reduce((sum, { length }) => sum + length, charsOf(turns, end));
  const length = chars + Math.max(0, count - 1) * BETWEEN.length;
  const enough = length <= limit ? Number.POSITIVE_INFINITY : limit / 2;
  const first: string[] = [];
  for (let i = 0, written = 0; i < count && written < enough; i++) {
    const text = entry(i);
    first.push(text);
    written += text.length;
  }
  if (length <= limit) return first.join(BETWEEN);
  const last: string[] = [];
  for (let i = count - 1, written = 0; i >= 0 && written < enough; i--) {
    const text = entry(i);
    last.push(text);
    written += text.length;
  }
  return joinEnds(first.join(BETWEEN), last.reverse().join(BETWEEN), length, limit);
}

/** Each line is marked as quoted, so that none of it can pass for a line of ours. */
export function quote(text: string): string {
  return text.replaceAll(/^/gm, "> ");
}

function entryOf(turn: Turn): string {
  return quote(renderTurn(turn, ENTRY_CHARS));
}

// A checkpoint has the sum of it, so each turn is written out once for that.
const known = new WeakMap<Turn, number>();

/** Characters of a turn's entry. */
export function entryChars(turn: Turn): number {
  const before = known.get(turn);
  if (before !== undefined) return before;
  const { length } = entryOf(turn);
  if (isUnchanging(turn)) known.set(turn, length);
  return length;
}

function charsOf(turns: readonly Turn[], end: number): number {
  const kept = keptPrefix(turns);
  const sum = (from: number, to: number): number =>
    turns.slice(from, to).reduce((all, turn) => all + entryChars(turn), 0);
  if (!kept?.isWhole || end < kept.count / 2) return sum(0, end);
  return end < kept.count
    ? kept.source.chars - sum(end, kept.count)
    : kept.source.chars + sum(kept.count, end);
}
