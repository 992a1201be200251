import type { Message, Piece } from "../project-messages.ts";

/** The API takes no more than this many in one request. */
const MAX_BREAKPOINTS = 4;
// One at the end of the tools and one at the end of the system prompt.
const BEFORE_MESSAGES = 2;

const MARK = `"cache_control":{"type":"ephemeral"}`;

/**
 * Marks the last block of the last message and of the user's message before it, so that the next request finds what this
 * one stored however many blocks came between. Blocks of the model are never touched (B008).
 */
export function withBreakpoints(messages: readonly Message[]): Message[] {
  const given = messages.flatMap(({ blocks }) => blocks.filter(isMarked)).length;
  let left = MAX_BREAKPOINTS - BEFORE_MESSAGES - given;
  const marked = [...messages];
  for (let i = messages.length - 1; i >= 0 && left > 0; i--) {
    const message = messages[i]!;
    const last = message.blocks.at(-1);
    if (message.role !== "user" || !last || isMarked(last)) continue;
    marked[i] = { role: "user", blocks: [...message.blocks.slice(0, -1), withMark(last)] };
    left -= 1;
  }
  return marked;
}

/** A document of our own making with the mark. */
export function marked(json: string): string {
  return `${json.slice(0, -1)},${MARK}}`;
}

function withMark(pieces: readonly Piece[]): Piece[] {
  const last = Buffer.from(pieces.at(-1) ?? "");
  const close = last.lastIndexOf("}");
  return [...pieces.slice(0, -1), last.subarray(0, close), `,${MARK}}`];
}

/** A client may have placed one of its own. A text that only speaks of it costs a breakpoint and nothing else. */
function isMarked(pieces: readonly Piece[]): boolean {
  return pieces.some((piece) => {
    if (typeof piece === "string") return piece.includes(`"cache_control"`);
    const before = known.get(piece);
    if (before !== undefined) return before;
    const isIn = Buffer.from(piece.buffer, piece.byteOffset, piece.length).includes(`"cache_control"`);
    known.set(piece, isIn);
    return isIn;
  });
}

// A piece is looked through once, not once for every request that it is in.
const known = new WeakMap<Uint8Array, boolean>();
