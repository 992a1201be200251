import { randomBytes } from "node:crypto";

/** Prefixes of the ids the mesh makes. */
export const ID_PREFIXES = [
  "sesn",
  "sevt",
  "agent",
  "env",
  "vlt",
  "vcrd",
  "hand",
  "req",
  "apikey",
  "wrkspc",
  "tok",
  "lease",
  "payl",
  "thrd",
  "bind",
  "call",
  "sesrsc",
] as const;

/** Prefix of an id. */
export type IdPrefix = (typeof ID_PREFIXES)[number];

// Crockford's base32 in lower case: sorts like the number it stands for, and has no i, l, o, u.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const SEQUENCE_LIMIT = 1 << 15;

let lastTime = 0;
let sequence = 0;

/**
 * Makes an id that sorts by time: prefix, 48-bit milliseconds, 15-bit sequence, 65 random bits,
 * for example `sesn_01k9x6tq3m0d7…`. Ids made by one process are strictly increasing, also when
 * the clock steps back. Opaque to clients.
 */
export function newId(prefix: IdPrefix): string {
  const now = Date.now();
  if (now > lastTime) {
    lastTime = now;
    // Starts low enough to leave room for many ids in the same millisecond.
    sequence = randomBytes(2).readUInt16BE() & 0x1fff;
  } else if (++sequence >= SEQUENCE_LIMIT) {
    lastTime += 1;
    sequence = 0;
  }
  let tail = "";
  for (const byte of randomBytes(13)) tail += ALPHABET[byte & 31];
  return `${prefix}_${base32(lastTime, 10)}${base32(sequence, 3)}${tail}`;
}

/** True when `value` has the form of an id with that prefix. Says nothing about its existence. */
export function isId(prefix: IdPrefix, value: string): boolean {
  return value.length <= 80 && value.startsWith(`${prefix}_`) && /^[a-z]+_[0-9a-zA-Z_]+$/.test(value);
}

function base32(value: number, digits: number): string {
  let out = "";
  let rest = value;
  for (let i = 0; i < digits; i++) {
    out = ALPHABET[rest % 32] + out;
    rest = Math.floor(rest / 32);
  }
  return out;
}
