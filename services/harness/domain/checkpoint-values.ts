/** What the bytes of a value point into. */
export interface Bytes {
  /** Bytes of its own. */
  own: Buffer;
  /** The text of the conversation's beginning; undefined where nothing may point into it. */
  text: Buffer | undefined;
}

/** Takes bytes out of a value, and answers with the mark that stands for them. */
export type Put = (bytes: Uint8Array) => Mark;
/** Where bytes are, from and how many: among the value's own, or in the text. */
export type Mark = { $b: [number, number] } | { $t: [number, number] };

/** JSON with marks for what JSON has no words for. The order of keys is kept: schemas are sent in it. */
export function encodeValue(value: unknown, put: Put): unknown {
  if (typeof value === "bigint") return { $n: String(value) };
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return put(value);
  if (Array.isArray(value)) return value.map((item) => encodeValue(item, put));
  if (value instanceof Map)
    return { $m: [...value].map(([key, item]) => [encodeValue(key, put), encodeValue(item, put)]) };
  if (value instanceof Set) return { $s: [...value].map((item) => encodeValue(item, put)) };
  const entries = Object.entries(value);
  if (entries.some(([key]) => NOT_PLAIN.has(key)))
    return { $o: entries.map(([key, item]) => [key, encodeValue(item, put)]) };
  const plain: Record<string, unknown> = {};
  for (const [key, item] of entries) plain[key] = encodeValue(item, put);
  return plain;
}

const NOT_PLAIN = new Set(["$n", "$b", "$t", "$m", "$s", "$o", "__proto__"]);

/** Reads back what encodeValue() wrote, in place. Throws for bytes that are nowhere. */
export function decodeValue(value: unknown, bytes: Bytes): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = decodeValue(value[i], bytes);
    return value;
  }
  const marked = value as Marked;
  if (marked.$n !== undefined) return BigInt(marked.$n);
  if (marked.$b) return slice(bytes.own, marked.$b);
  if (marked.$t) return slice(bytes.text, marked.$t);
  if (marked.$m)
    return new Map(marked.$m.map(([key, item]) => [decodeValue(key, bytes), decodeValue(item, bytes)]));
  if (marked.$s) return new Set(marked.$s.map((item) => decodeValue(item, bytes)));
  if (marked.$o) {
    const made = {};
    for (const [key, item] of marked.$o) {
      const property = {
        value: decodeValue(item, bytes),
        enumerable: true,
        writable: true,
        configurable: true,
      };
      Object.defineProperty(made, key, property);
    }
    return made;
  }
  const plain = value as Record<string, unknown>;
  for (const key of Object.keys(plain)) plain[key] = decodeValue(plain[key], bytes);
  return plain;
}

interface Marked {
  $n?: string;
  $b?: [number, number];
  $t?: [number, number];
  $m?: [unknown, unknown][];
  $s?: unknown[];
  $o?: [string, unknown][];
}

function slice(bytes: Buffer | undefined, [from, length]: [number, number]): Buffer {
  if (!bytes || from < 0 || length < 0 || from + length > bytes.length) throw new Error("out of bounds");
  return bytes.subarray(from, from + length);
}
