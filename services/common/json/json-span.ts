/** Where a value stands in a JSON text. */
export interface Span {
  start: number;
  end: number;
}

/**
 * Finds the value of a member of a JSON object, as written: [start, end) of its text. `json` must be valid JSON (parse
 * it first); a name that occurs twice gives the last one, as JSON.parse does. Lets blocks be put together from what a
 * provider sent without writing a single byte of it anew (B008).
 */
export function findMember(json: string, name: string): Span | undefined {
  let at = skipSpace(json, 0);
  if (json[at] !== "{") return undefined;
  at = skipSpace(json, at + 1);
  let found: Span | undefined;
  while (json[at] === '"') {
    const keyEnd = skipString(json, at);
    const key: unknown = JSON.parse(json.slice(at, keyEnd));
    const start = skipSpace(json, skipSpace(json, keyEnd) + 1);
    const end = skipValue(json, start);
    if (key === name) found = { start, end };
    at = skipSpace(json, end);
    if (json[at] === ",") at = skipSpace(json, at + 1);
  }
  return found;
}

/** Replaces the value of a member, or adds the member at the end. */
export function withMember(json: string, name: string, value: string): string {
  const span = findMember(json, name);
  if (span) return json.slice(0, span.start) + value + json.slice(span.end);
  const close = json.lastIndexOf("}");
  const isEmpty = json.slice(json.indexOf("{") + 1, close).trim() === "";
  return `${json.slice(0, close)}${isEmpty ? "" : ","}${JSON.stringify(name)}:${value}${json.slice(close)}`;
}

/** True for a UTF-8 JSON text that is one object. */
export function isJsonObject(bytes: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (at < json.length && " \t\n\r".includes(json[at]!)) at += 1;
  return at;
}

function skipString(json: string, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at + 1;
}

function skipValue(json: string, from: number): number {
  if (json[from] === '"') return skipString(json, from);
  let depth = 0;
  let at = from;
  while (at < json.length) {
    const char = json[at]!;
    if (char === '"') {
      at = skipString(json, at);
      if (depth === 0) return at;
      continue;
    }
    if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") {
      if (depth === 0) return trimEnd(json, from, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (char === "," && depth === 0) return trimEnd(json, from, at);
    at += 1;
  }
  return trimEnd(json, from, at);
}

function trimEnd(json: string, from: number, end: number): number {
  let at = end;
  while (at > from && " \t\n\r".includes(json[at - 1]!)) at -= 1;
  return at;
}
