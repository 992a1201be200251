import { endOfString, MAX_DEPTH, QUOTE } from "./json-bytes.ts";

const COLON = 0x3a;

/**
 * Says whether JSON has an object with the same key twice, or is nested deeper than anybody needs. We judge what
 * JSON.parse saw, the upstream what its parser sees: with `{"model":"a","model":"b"}` the two may differ. JSON.parse
 * keeps one of equal keys, however they are escaped, so there are as many colons outside of strings as there are keys
 * in the value, or some key occurred twice.
 */
export function hasDuplicateKeys(json: Buffer, parsed: unknown): boolean {
  const keys = countKeys(parsed);
  return keys === undefined || keys !== countColons(json);
}

function countColons(json: Buffer): number {
  let count = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === COLON) count += 1;
    else if (byte === QUOTE) at = endOfString(json, at);
  }
  return count;
}

/** Level by level, so that no nesting can exhaust the stack. */
function countKeys(parsed: unknown): number | undefined {
  let level: object[] = isObject(parsed) ? [parsed] : [];
  let count = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return undefined;
    const next: object[] = [];
    for (const value of level) {
      const isList = Array.isArray(value);
      const children: unknown[] = isList ? value : Object.values(value);
      if (!isList) count += children.length;
      for (const child of children) if (isObject(child)) next.push(child);
    }
    level = next;
  }
  return count;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
