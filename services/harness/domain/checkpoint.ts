import { type Call, emptyState, type SessionState } from "./session-state.ts";

/**
 * Name and version of the fold that a checkpoint is of. Raise it with any change to what fold() makes of an event: a
 * checkpoint of another version is never read. A field that comes or goes is noticed without that.
 */
export const CHECKPOINT_FORMAT = "ganglion/1";

const FIELDS = Object.keys(emptyState()).sort().join(",");
const HEAD_BYTES = 4;

/** Writes a state down, the same state always as the same bytes; undefined for one that cannot be. */
export function serializeState(state: SessionState): Buffer | undefined {
  const known = callsById(state);
  const open = [...state.openCalls.keys()];
  if (!open.every((id) => known.get(id) === state.openCalls.get(id))) return undefined;
  const chunks: Uint8Array[] = [];
  let at = 0;
  const put = (bytes: Uint8Array): unknown => {
    chunks.push(bytes);
    at += bytes.length;
    return { $b: [at - bytes.length, bytes.length] };
  };
  // An open call is one object in two places, and it is changed in both at once.
  const value = encode({ ...state, openCalls: open }, put);
  const json = Buffer.from(JSON.stringify({ fields: FIELDS, value }));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32LE(json.length);
  return Buffer.concat([head, json, ...chunks]);
}

/** Reads a state back; undefined when it is not one of this version, or is damaged. */
export function parseState(data: Uint8Array): SessionState | undefined {
  try {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
    const end = HEAD_BYTES + bytes.readUInt32LE(0);
    const { fields, value } = JSON.parse(bytes.toString("utf8", HEAD_BYTES, end)) as Written;
    if (fields !== FIELDS) return undefined;
    const { openCalls, ...rest } = decode(value, bytes.subarray(end)) as Decoded;
    const state: SessionState = { ...emptyState(), ...rest, openCalls: new Map() };
    const known = callsById(state);
    for (const id of openCalls) {
      const call = known.get(id);
      if (!call) return undefined;
      state.openCalls.set(id, call);
    }
    return state;
  } catch {
    return undefined;
  }
}

interface Written {
  fields: string;
  value: unknown;
}

type Decoded = Omit<SessionState, "openCalls"> & { openCalls: string[] };

function callsById({ turns }: SessionState): Map<string, Call> {
  const calls = turns.flatMap((turn) => (turn.kind === "assistant" ? turn.calls : []));
  return new Map(calls.map((call) => [call.id, call]));
}

/** JSON with marks for what JSON has no words for. The order of keys is kept: schemas are sent in it. */
function encode(value: unknown, put: (bytes: Uint8Array) => unknown): unknown {
  if (typeof value === "bigint") return { $n: String(value) };
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return put(value);
  if (Array.isArray(value)) return value.map((item) => encode(item, put));
  if (value instanceof Map)
    return { $m: [...value].map(([key, item]) => [encode(key, put), encode(item, put)]) };
  if (value instanceof Set) return { $s: [...value].map((item) => encode(item, put)) };
  const entries = Object.entries(value).map(([key, item]) => [key, encode(item, put)] as const);
  const isPlain = entries.every(([key]) => !key.startsWith("$") && key !== "__proto__");
  return isPlain ? Object.fromEntries(entries) : { $o: entries };
}

function decode(value: unknown, bytes: Buffer): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = decode(value[i], bytes);
    return value;
  }
  const marked = value as Marked;
  if (marked.$n !== undefined) return BigInt(marked.$n);
  if (marked.$b) return slice(bytes, marked.$b);
  if (marked.$m) return new Map(marked.$m.map(([key, item]) => [decode(key, bytes), decode(item, bytes)]));
  if (marked.$s) return new Set(marked.$s.map((item) => decode(item, bytes)));
  if (marked.$o) {
    const made = {};
    for (const [key, item] of marked.$o) {
      const property = { value: decode(item, bytes), enumerable: true, writable: true, configurable: true };
      Object.defineProperty(made, key, property);
    }
    return made;
  }
  const plain = value as Record<string, unknown>;
  for (const key of Object.keys(plain)) plain[key] = decode(plain[key], bytes);
  return plain;
}

interface Marked {
  $n?: string;
  $b?: [number, number];
  $m?: [unknown, unknown][];
  $s?: unknown[];
  $o?: [string, unknown][];
}

function slice(bytes: Buffer, [from, length]: [number, number]): Buffer {
  if (from < 0 || length < 0 || from + length > bytes.length) throw new Error("out of bounds");
  return bytes.subarray(from, from + length);
}
