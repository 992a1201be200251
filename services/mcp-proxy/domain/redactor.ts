import { needlesOf } from "./secret-forms.ts";

/** Removes a secret, in all its forms, from a stream of bytes. */
export interface Redactor {
  /** Gives what may be passed on now. Holds back only a tail that may be the start of the secret. */
  push(chunk: Buffer): Buffer;
  /** Gives what was held back; call it once, at the end. */
  flush(): Buffer;
  /** How often the secret was found. */
  readonly count: number;
}

const NOTHING = Buffer.alloc(0);

/** Makes a redactor. Each place is replaced by `[REDACTED:<label>]`; without a secret everything passes. */
export function createRedactor(secret: string | undefined, label: string): Redactor {
  return createRedactorOf(secret === undefined ? [] : needlesOf(secret), label);
}

/** Makes a redactor of the forms of a secret, for who needs many: to write the forms down takes longer than a short search. */
export function createRedactorOf(needles: readonly Buffer[], label: string): Redactor {
  const mark = Buffer.from(`[REDACTED:${label}]`);
  let held: Buffer = NOTHING;
  let count = 0;
  return {
    push: (chunk) => {
      if (needles.length === 0) return chunk;
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const found = findAll(bytes, needles);
      count += found.length;
      const from = found.at(-1)?.end ?? 0;
      const keep = heldTail(bytes, from, needles);
      // A copy: what is held must not keep a whole network buffer alive.
      held = keep === 0 ? NOTHING : Buffer.from(bytes.subarray(bytes.length - keep));
      return replace(bytes.subarray(0, bytes.length - keep), found, mark);
    },
    flush: () => {
      const rest = held;
      held = NOTHING;
      return rest;
    },
    get count() {
      return count;
    },
  };
}

interface Place {
  at: number;
  end: number;
}

/** All places, from left to right; where two begin at the same byte the longer one wins (case A064). */
function findAll(bytes: Buffer, needles: readonly Buffer[]): Place[] {
  const next = needles.map((needle) => bytes.indexOf(needle));
  const places: Place[] = [];
  let from = 0;
  for (;;) {
    let at = -1;
    let end = -1;
    needles.forEach((needle, i) => {
      let place = next[i] as number;
      if (place !== -1 && place < from) {
        place = bytes.indexOf(needle, from);
        next[i] = place;
      }
      if (place === -1) return;
      if (at === -1 || place < at || (place === at && place + needle.length > end)) {
        at = place;
        end = place + needle.length;
      }
    });
    if (at === -1) return places;
    places.push({ at, end });
    from = end;
  }
}

/** Length of the longest tail that is the start of a needle. */
function heldTail(bytes: Buffer, from: number, needles: readonly Buffer[]): number {
  let longest = 0;
  for (const needle of needles) {
    const first = needle[0] as number;
    let at = bytes.indexOf(first, Math.max(from, bytes.length - needle.length + 1));
    while (at !== -1) {
      const length = bytes.length - at;
      if (length <= longest) break;
      if (bytes.compare(needle, 0, length, at) === 0) {
        longest = length;
        break;
      }
      at = bytes.indexOf(first, at + 1);
    }
  }
  return longest;
}

function replace(bytes: Buffer, places: readonly Place[], mark: Buffer): Buffer {
  if (places.length === 0) return bytes;
  const parts: Buffer[] = [];
  let from = 0;
  for (const { at, end } of places) {
    parts.push(bytes.subarray(from, at), mark);
    from = end;
  }
  parts.push(bytes.subarray(from));
  return Buffer.concat(parts);
}
