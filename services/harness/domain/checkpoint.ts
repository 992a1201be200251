import { type Places, readPart, splitParts, writePart } from "./checkpoint-part.ts";
import { contextOf } from "./context/context-of.ts";
import { entryChars } from "./context/transcript.ts";
import { isUnchanging } from "./is-unchanging.ts";
import { isKept, type KeptSource, keptPart, keptPrefix, keptTurns, plainTurn } from "./kept-turns.ts";
import { type Call, emptyState, type SessionState, type Turn } from "./session-state.ts";
import { keepWritten, type Written, writtenOf } from "./write-messages.ts";

/**
 * Name and version of the fold that a checkpoint is of, and of the way it is written. Raise it with any change to what
 * fold() makes of an event or a request of a turn: a checkpoint of another version is never read. A field that comes or
 * goes is noticed without that.
 */
export const CHECKPOINT_FORMAT = "ganglion/4";

const FIELDS = Object.keys(emptyState()).sort().join(",");
/** The newest turns that are read at once: who runs calls looks at them. */
const NEWEST_TURNS = 8;

/** A state written down, in three parts, of which the next request takes the first two. */
export interface WrittenState {
  /** Everything but the older turns. */
  head: Buffer;
  /** The beginning of the conversation as requests have it. */
  text: Buffer;
  /** The older turns; what is in the text is not in here once more. */
  older: Buffer;
}

/** As WrittenState, with the older turns not unpacked before somebody looks at one. */
export type ReadState = Pick<WrittenState, "head" | "text"> & { older: () => Buffer };

interface Head {
  fields: string;
  value: Omit<SessionState, "openCalls" | "turns"> & { openCalls: string[] };
  turns: number;
  /** The turns that are not in here. */
  older: Pick<KeptSource, "count" | "through" | "chars">;
  /** How many of them the text is of, and whose message it ends in. */
  written: number;
  role: Written["role"];
}

// Most of a long state was there the last time, and does not change any more.
const known = new WeakMap<Turn, { part: Buffer; places: Places | undefined }>();

/** Writes a state down, the same state always as the same bytes; undefined for one that cannot be. */
export function serializeState(state: SessionState, newest = NEWEST_TURNS): WrittenState | undefined {
  const open = [...state.openCalls.keys()];
  const calls = callsById(state.turns, open);
  // An open call is one object in two places, and it is changed in both at once.
  if (!open.every((id) => calls.get(id) === state.openCalls.get(id))) return undefined;
  const written = shownAsIs(state);
  const older = olderOf(state.turns, Math.max(0, (written?.turns.length ?? 0) - newest));
  const { turns, ...others } = state;
  const head: Head = {
    fields: FIELDS,
    value: { ...others, openCalls: open },
    turns: turns.length,
    older,
    written: written?.turns.length ?? 0,
    role: written?.role ?? "user",
  };
  const parts = turns.map((turn, i) => turnPart(turn, i, written));
  return {
    head: Buffer.concat([writePart(head), ...parts.slice(older.count)]),
    text: Buffer.concat(written?.text ?? []),
    older: Buffer.concat(parts.slice(0, older.count)),
  };
}

/** Does the work of serializeState() on some of the turns, so that it is short if they stay as they are. */
export function prepareTurns(state: SessionState, from: number, to: number): void {
  const written = shownAsIs(state, to);
  for (let i = from; i < Math.min(to, state.turns.length); i++) {
    const turn = state.turns[i]!;
    turnPart(turn, i, written);
    if (written && i < written.turns.length && !isKept(turn)) entryChars(turn);
  }
}

/** Reads a state back; undefined when it is not one of this version, or is damaged. */
export function parseState({ head, text, older }: ReadState): SessionState | undefined {
  try {
    const [first, ...parts] = splitParts(head);
    const read = first && (readPart(first) as Head);
    if (read?.fields !== FIELDS || read.turns !== read.older.count + parts.length) return undefined;
    const places: Places = new WeakMap();
    const turns = keptTurns({ ...read.older, parts: older, text, places });
    for (const part of parts) {
      const turn = readPart(part, text) as Turn;
      turns.push(turn);
      if (isUnchanging(turn))
        known.set(turn, { part, places: turns.length <= read.written ? places : undefined });
    }
    const state: SessionState = { ...emptyState(), ...read.value, turns, openCalls: new Map() };
    const calls = callsById(turns, read.value.openCalls);
    for (const id of read.value.openCalls) {
      const call = calls.get(id);
      if (!call) return undefined;
      state.openCalls.set(id, call);
    }
    const { summary } = state;
    if (read.written > 0)
      keepWritten({ summary, turns: turns.slice(0, read.written), text: [text], role: read.role, places });
    return state;
  } catch {
    return undefined;
  }
}

/** What requests have of the turns, where they have them as they are. */
function shownAsIs(state: SessionState, most?: number): Written | undefined {
  const context = contextOf(state);
  if (context?.strategy.view(state, context.options) !== state.turns) return undefined;
  return writtenOf(state.summary, state.turns, most);
}

/** The oldest turns, up to so many: as long as none goes beyond the next one. Those that are kept are not looked at. */
function olderOf(turns: readonly Turn[], most: number): Pick<KeptSource, "count" | "through" | "chars"> {
  const kept = keptPrefix(turns);
  const isKnown = kept?.isWhole === true && kept.count <= most;
  let { count, through, chars } = isKnown ? kept.source : { count: 0, through: 0n, chars: 0 };
  for (; count < most && turns[count]!.through >= through; count++) {
    through = turns[count]!.through;
    chars += entryChars(turns[count]!);
  }
  return { count, through, chars };
}

function turnPart(turn: Turn, index: number, written: Written | undefined): Buffer {
  const places = written && index < written.turns.length ? written.places : undefined;
  const before = places && keptPart(turn, places);
  if (before) return before;
  const last = known.get(turn);
  if (last && last.places === places) return last.part;
  const part = writePart(plainTurn(turn), places);
  if (isUnchanging(turn)) known.set(turn, { part, places });
  return part;
}

/** The calls of these ids, which are in the newest turns. */
function callsById(turns: readonly Turn[], ids: readonly string[]): Map<string, Call> {
  const calls = new Map<string, Call>();
  for (let i = turns.length - 1; i >= 0 && calls.size < ids.length; i--) {
    const turn = turns[i]!;
    if (turn.kind !== "assistant") continue;
    for (const call of turn.calls) if (ids.includes(call.id)) calls.set(call.id, call);
  }
  return calls;
}
