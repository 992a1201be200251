import { PLACEHOLDER_BYTES, PLACEHOLDER_PREFIX } from "./placeholder.ts";

/** Puts other bytes in the place of placeholders, in a stream of bytes. */
export interface Substitution {
  /** Gives what may be passed on now; holds back only what may be the start of a placeholder. */
  push(chunk: Buffer): Buffer;
  /** Gives what was held back; call it once, at the end. */
  flush(): Buffer;
}

const PREFIX = Buffer.from(PLACEHOLDER_PREFIX);
const NOTHING = Buffer.alloc(0);

/** Makes a substitution. A placeholder that is not in the map stays as it is; `onReplaced` is told of each other one. */
export function createSubstitution(
  values: ReadonlyMap<string, string>,
  onReplaced: () => void = () => {},
): Substitution {
  let held: Buffer = NOTHING;
  return {
    push: (chunk) => {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const parts: Buffer[] = [];
      let from = 0;
      let at = bytes.indexOf(PREFIX);
      while (at !== -1 && at + PLACEHOLDER_BYTES <= bytes.length) {
        const value = values.get(bytes.toString("latin1", at, at + PLACEHOLDER_BYTES));
        if (value !== undefined) {
          parts.push(bytes.subarray(from, at), Buffer.from(value));
          onReplaced();
          from = at + PLACEHOLDER_BYTES;
        }
        at = bytes.indexOf(PREFIX, value === undefined ? at + 1 : from);
      }
      const end = at === -1 ? bytes.length - startOfPrefix(bytes, from, PREFIX) : at;
      held = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end));
      if (parts.length === 0) return bytes.subarray(0, end);
      return Buffer.concat([...parts, bytes.subarray(from, end)]);
    },
    flush: () => {
      const rest = held;
      held = NOTHING;
      return rest;
    },
  };
}

/** Puts values in the place of placeholders in the value of a header; inside the base64 of Basic as well. */
export function substituteHeader(text: string, values: ReadonlyMap<string, string>): string {
  return changeHeader(text, (inner) => substituteText(inner, values));
}

/** Changes the value of a header; of Basic what its base64 stands for. */
export function changeHeader(text: string, change: (inner: string) => string): string {
  const basic = /^(Basic +)([A-Za-z0-9+/]+={0,2})$/i.exec(text);
  if (!basic?.[2]) return change(text);
  const pair = Buffer.from(basic[2], "base64").toString("latin1");
  const changed = change(pair);
  return changed === pair ? text : `${basic[1]}${Buffer.from(changed, "latin1").toString("base64")}`;
}

/** How a value is written inside a body of that type, so that it stays one value. */
export function encodeForBody(value: string, contentType: string): string {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === "application/json" || type.endsWith("+json")) return JSON.stringify(value).slice(1, -1);
  return type === "application/x-www-form-urlencoded" ? encodeURIComponent(value) : value;
}

function substituteText(text: string, values: ReadonlyMap<string, string>): string {
  if (!text.includes(PLACEHOLDER_PREFIX)) return text;
  return runThrough(createSubstitution(values), text);
}

/** A short text as it comes out of a substitution. */
export function runThrough(substitution: Substitution, text: string): string {
  const head = substitution.push(Buffer.from(text, "latin1"));
  return Buffer.concat([head, substitution.flush()]).toString("latin1");
}

/** Length of the longest tail of `bytes`, not before `from`, that is the start of the prefix. */
export function startOfPrefix(bytes: Buffer, from: number, prefix: Buffer): number {
  const most = Math.min(prefix.length - 1, bytes.length - from);
  for (let length = most; length > 0; length -= 1) {
    if (bytes.compare(prefix, 0, length, bytes.length - length) === 0) return length;
  }
  return 0;
}
