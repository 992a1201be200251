import {
  type Message,
  messagePieces,
  type Piece,
  projectMessages,
  type Resolve,
} from "./project-messages.ts";
import type { Summary, Turn } from "./session-state.ts";

/** The beginning of a conversation as it was written, and what it was written of. */
interface Kept {
  summary: Summary | null;
  turns: readonly Turn[];
  /** Without what closes the last message: the next block may belong to it. */
  text: Buffer;
  role: Message["role"];
}

// By the newest turn in it, one for each conversation. Turns that are answered do not change any more, so what was written
// of them is not written again for each request; whether they are the same turns is looked at each time.
const kept = new WeakMap<Turn, Kept>();
/** Turns by which a beginning grows: it is copied each time. */
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
  const before = extend(find(summary, turns), summary, turns, resolve);
  const rest = [...turns.slice(before?.turns.length ?? 0), ...queued];
  const messages = projectMessages(before ? null : summary, rest, resolve);
  if (before) return [before.text, ...continued(before.role, messages)];
  return messages.length === 0 ? [] : messagePieces(messages);
}

function find(summary: Summary | null, turns: readonly Turn[]): Kept | undefined {
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
  before: Kept | undefined,
  summary: Summary | null,
  turns: readonly Turn[],
  resolve: Resolve,
): Kept | undefined {
  const from = before?.turns.length ?? 0;
  let end = from;
  while (end < turns.length - 1 && isFinal(turns[end] as Turn)) end += 1;
  if (end - from < STEP_TURNS) return before;
  const messages = projectMessages(before ? null : summary, turns.slice(from, end), resolve);
  const last = messages.at(-1);
  if (!last) return before;
  const pieces = before ? [before.text, ...continued(before.role, messages)] : messagePieces(messages);
  const whole = Buffer.concat(
    pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)),
  );
  const text = whole.subarray(0, whole.length - CLOSE.length);
  const now: Kept = { summary, turns: turns.slice(0, end), text, role: last.role };
  if (before) kept.delete(before.turns.at(-1) as Turn);
  kept.set(turns[end - 1] as Turn, now);
  return now;
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
