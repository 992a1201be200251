const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COLON = 0x3a;
const MAX_DEPTH = 256;

/**
 * Says whether valid JSON has an object with the same key twice, or is nested deeper than anybody needs. We judge what
 * JSON.parse saw, the upstream what its parser sees: with `{"model":"a","model":"b"}` the two may differ. One pass over
 * the bytes, strings skipped by the engine's own search.
 */
export function hasDuplicateKeys(json: Buffer): boolean {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      const end = endOfString(json, at);
      const keys = open.at(-1);
      if (keys && isFollowedByColon(json, end)) {
        const key = JSON.parse(json.toString("utf8", at, end + 1)) as string;
        if (keys.has(key)) return true;
        keys.add(key);
      }
      at = end;
    } else if (byte === OPEN_OBJECT) {
      open.push(new Set());
    } else if (byte === OPEN_ARRAY) {
      open.push(undefined);
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      open.pop();
    }
    if (open.length > MAX_DEPTH) return true;
  }
  return false;
}

function endOfString(json: Buffer, start: number): number {
  let end = json.indexOf(QUOTE, start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (json[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = json.indexOf(QUOTE, end + 1);
  }
  return json.length - 1;
}

function isFollowedByColon(json: Buffer, end: number): boolean {
  let at = end + 1;
  while (json[at] === 0x20 || json[at] === 0x0a || json[at] === 0x0d || json[at] === 0x09) at += 1;
  return json[at] === COLON;
}
