import type { Places } from "./checkpoint-part.ts";
import {
  type Message,
  messagePieces,
  type Piece,
  projectMessages,
  type Resolve,
} from "./project-messages.ts";
import type { Summary, Turn } from "./session-state.ts";

/** The beginning of a conversation as it was written, and what it was written of. */
export interface Written {
  summary: Summary | null;
  turns: readonly Turn[];
  /** In pieces, without what closes the last message: the next block may belong to it. */
  text: readonly Buffer[];
  role: Message["role"];
  /** Where a block's document stands in the text. One for each beginning, however far it is written. */
  places: Places;
}

// By the newest turn in it, one for each conversation. Turns that are answered do not change any more, so what was written
// of them is not written again for each request; whether they are the same turns is looked at each time.
const kept = new WeakMap<Turn, Written>();
/** Turns by which a beginning grows. */
const STEP_TURNS = 8;
const CLOSE = "]}";

/**
 * Writes the messages of a conversation as they stand in a body, without the brackets around all of them; nothing when there
 * are none. `turns` are the log's, `queued` what no request has consumed yet.
 */
export function writeMessages(
  summary: Summary | null,
  turns: readonly Turn[],
  queued: readonly Turn[],
  resolve: Resolve,
): Piece[] {
  const before = extend(find(summary, turns), summary, turns, resolve, STEP_TURNS);
  const rest = [...turns.slice(before?.turns.length ?? 0), ...queued];
  const messages = projectMessages(before ? null : summary, rest, resolve);
  if (before) return [...before.text, ...continued(before.role, messages)];
  return messages.length === 0 ? [] : messagePieces(messages);
}

/** What will not change of a conversation, of its first `most` turns at least, written; undefined when there is nothing. */
export function writtenOf(
  summary: Summary | null,
  turns: readonly Turn[],
  most = turns.length,
): Written | undefined {
  return extend(find(summary, turns), summary, turns, (block) => block, 1, most);
}

/** Takes what writtenOf() gave another brain: later requests go on behind it. */
export function keepWritten(written: Written): void {
  const newest = written.turns.at(-1);
  if (newest) kept.set(newest, written);
}

function find(summary: Summary | null, turns: readonly Turn[]): Written | undefined {
  for (let i = turns.length - 1; i >= 0; i--) {
    const known = kept.get(turns[i] as Turn);
    if (!known) continue;
    const isSame =
      known.summary === summary &&
      known.turns.length === i + 1 &&
      known.turns.every((turn, at) => turn === turns[at]);
    if (isSame) return known;
    // Turns before it left the window.
    kept.delete(turns[i] as Turn);
    return undefined;
  }
  return undefined;
}

/** Adds the turns that will not change, all but the newest, once there are enough of them. */
function extend(
  before: Written | undefined,
  summary: Summary | null,
  turns: readonly Turn[],
  resolve: Resolve,
  atLeast: number,
  most = turns.length,
): Written | undefined {
  const from = before?.turns.length ?? 0;
  let end = from;
  while (end < Math.min(most, turns.length - 1) && isFinal(turns[end] as Turn)) end += 1;
  if (end - from < atLeast) return before;
  const messages = projectMessages(before ? null : summary, turns.slice(from, end), resolve);
  const role = messages.at(-1)?.role ?? before?.role;
  if (!role) return undefined;
  const places: Places = before?.places ?? new WeakMap();
  const more = before ? continued(before.role, messages) : messagePieces(messages);
  const text = grow(before?.text ?? [], more, places);
  const now: Written = { summary, turns: turns.slice(0, end), text, role, places };
  if (before) kept.delete(before.turns.at(-1) as Turn);
  kept.set(turns[end - 1] as Turn, now);
  return now;
}

/** Pieces of about the same size are joined, so that there are few of them and none is copied often. */
function grow(text: readonly Buffer[], more: readonly Piece[], places: Places): Buffer[] {
  let at = text.reduce((sum, { length }) => sum + length, 0);
  const bytes = more.map((piece) => {
    const written = typeof piece === "string" ? Buffer.from(piece) : piece;
    if (typeof piece !== "string") places.set(piece, at);
    at += written.length;
    return written;
  });
  const whole = Buffer.concat(bytes);
  const open = whole.subarray(0, whole.length - CLOSE.length);
  const pieces = open.length > 0 ? [...text, open] : [...text];
  for (;;) {
    const [older, newer] = pieces.slice(-2);
    if (!older || !newer || older.length > 2 * newer.length) return pieces;
    pieces.splice(-2, 2, Buffer.concat([older, newer]));
  }
}

/** What follows an open message of that role. */
function continued(role: Message["role"], messages: readonly Message[]): Piece[] {
  const [first, ...others] = messages;
  if (!first) return [CLOSE];
  if (first.role !== role) return [`${CLOSE},`, ...messagePieces(messages)];
  const more = first.blocks.flatMap((block) => [",", ...block]);
  return [...more, CLOSE, ...(others.length > 0 ? [",", ...messagePieces(others)] : [])];
}

/** True when all calls are answered and everything is in the log itself. */
function isFinal(turn: Turn): boolean {
  if (turn.kind === "user") return turn.content.every(isInLog);
  return turn.blocks.every(isInLog) && turn.calls.every(({ result }) => result?.content.every(isInLog));
}

function isInLog({ data }: { data?: { $case: string } | undefined }): boolean {
  return data?.$case === "json";
}
