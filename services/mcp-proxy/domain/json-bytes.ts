/** The byte of a double quote. */
export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENERS = new Set([0x7b, 0x5b]);
const CLOSERS = new Set([0x7d, 0x5d]);

/** Nesting beyond which JSON is refused: nobody needs it, and recursive readers fall over it. */
export const MAX_DEPTH = 256;

/** Where a string of valid JSON that starts at `start` ends; the engine's own search skips its text. */
export function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(QUOTE, start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (json[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = json.indexOf(QUOTE, end + 1);
  }
  return json.length - 1;
}

/** True for valid JSON that is nested deeper than MAX_DEPTH. */
export function isTooDeep(json: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number;
    if (byte === QUOTE) at = endOfString(json, at);
    else if (OPENERS.has(byte)) depth += 1;
    else if (CLOSERS.has(byte)) depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}
