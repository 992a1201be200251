import { SEALED_PREFIX } from "./sealed-token.ts";
import { type Substitution, startOfPrefix } from "./substitute.ts";

const PREFIX = Buffer.from(SEALED_PREFIX);
const NOTHING = Buffer.alloc(0);
/** Nonce and tag alone have as many characters; what is shorter is a word like any other. */
const MIN_CHARS = 38;
/** The longest token with all that is sealed beside it has less. */
const MAX_CHARS = 32_768;

/**
 * Puts other bytes in the place of sealed tokens, in a stream of bytes. A sealed token ends where base64url ends, so a few
 * more letters behind it make another one of it. `open` throws for one that does not open.
 */
export function createUnsealing(open: (sealed: string) => string): Substitution {
  let held: Buffer[] = [];
  let size = 0;
  /** What is held is a token so far. */
  let isToken = false;
  const take = (bytes: Buffer, isLast: boolean): Buffer => {
    const parts: Buffer[] = [];
    let from = 0;
    let at = bytes.indexOf(PREFIX);
    while (at !== -1) {
      const end = endOfToken(bytes, at + PREFIX.length);
      const isWhole = isLast || end < bytes.length || end - at > MAX_CHARS;
      if (!isWhole) break;
      if (end - at - PREFIX.length >= MIN_CHARS) {
        const value = open(bytes.toString("latin1", at, end));
        parts.push(bytes.subarray(from, at), Buffer.from(value));
        from = end;
      }
      at = bytes.indexOf(PREFIX, end);
    }
    const tail = isLast ? 0 : startOfPrefix(bytes, from, PREFIX);
    const stop = at === -1 ? bytes.length - tail : at;
    held = stop === bytes.length ? [] : [Buffer.from(bytes.subarray(stop))];
    size = bytes.length - stop;
    isToken = at !== -1;
    return parts.length === 0
      ? bytes.subarray(0, stop)
      : Buffer.concat([...parts, bytes.subarray(from, stop)]);
  };
  return {
    push: (chunk) => {
      // What is held is not looked through again for each piece of a long one.
      if (isToken && size + chunk.length <= MAX_CHARS && endOfToken(chunk, 0) === chunk.length) {
        held.push(Buffer.from(chunk));
        size += chunk.length;
        return NOTHING;
      }
      return take(held.length === 0 ? chunk : Buffer.concat([...held, chunk]), false);
    },
    flush: () => take(Buffer.concat(held), true),
  };
}

function endOfToken(bytes: Buffer, from: number): number {
  let end = from;
  while (end < bytes.length && isBase64url(bytes[end] as number)) end += 1;
  return end;
}

function isBase64url(byte: number): boolean {
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x5f;
}
