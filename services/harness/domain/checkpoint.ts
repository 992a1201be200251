import { type Call, emptyState, type SessionState, type Turn } from "./session-state.ts";

/**
 * Name and version of the fold that a checkpoint is of, and of the way it is written. Raise it with any change to what
 * fold() makes of an event: a checkpoint of another version is never read. A field that comes or goes is noticed without
 * that.
 */
export const CHECKPOINT_FORMAT = "ganglion/3";

const FIELDS = Object.keys(emptyState()).sort().join(",");
const HEAD_BYTES = 8;

/** A value as JSON and the bytes that it points into. */
interface Part {
  json: Buffer;
  chunks: readonly Uint8Array[];
  size: number;
}

// Most of a long state was there the last time, and does not change any more.
const known = new WeakMap<Turn, Part>();

/** Writes a state down, the same state always as the same bytes; undefined for one that cannot be. */
export function serializeState(state: SessionState): Buffer | undefined {
  const open = [...state.openCalls.keys()];
  const written = callsById(state, open);
  if (!open.every((id) => written.get(id) === state.openCalls.get(id))) return undefined;
  // An open call is one object in two places, and it is changed in both at once.
  const value = { ...state, turns: state.turns.length, openCalls: open };
  const parts = [toPart({ fields: FIELDS, value }), ...state.turns.map(turnPart)];
  return Buffer.concat(
    parts.flatMap(({ json, chunks, size }) => [headOf(json.length, size), json, ...chunks]),
  );
}

/** Does the work of serializeState() on turns that stay as they are, so that a later call is short. */
export function prepareTurns(turns: readonly Turn[]): void {
  for (const turn of turns) turnPart(turn);
}

/** Reads a state back; undefined when it is not one of this version, or is damaged. */
export function parseState(data: Uint8Array): SessionState | undefined {
  try {
    const parts = readParts(Buffer.from(data.buffer, data.byteOffset, data.length));
    const { fields, value } = parts.next().value as Written;
    if (fields !== FIELDS) return undefined;
    const turns = [...parts] as Turn[];
    if (turns.length !== value.turns) return undefined;
    const state: SessionState = { ...emptyState(), ...value, turns, openCalls: new Map() };
    const written = callsById(state, value.openCalls);
    for (const id of value.openCalls) {
      const call = written.get(id);
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
  value: Omit<SessionState, "openCalls" | "turns"> & { openCalls: string[]; turns: number };
}

function* readParts(bytes: Buffer): Generator<unknown, undefined> {
  for (let at = 0; at < bytes.length; ) {
    const json = at + HEAD_BYTES;
    const chunks = json + bytes.readUInt32LE(at);
    const end = chunks + bytes.readUInt32LE(at + 4);
    if (end > bytes.length) throw new Error("out of bounds");
    yield decode(JSON.parse(bytes.toString("utf8", json, chunks)), bytes.subarray(chunks, end));
    at = end;
  }
}

function headOf(jsonBytes: number, chunkBytes: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(jsonBytes);
  head.writeUInt32LE(chunkBytes, 4);
  return head;
}

function turnPart(turn: Turn): Part {
  const before = known.get(turn);
  if (before) return before;
  const part = toPart(turn);
  // Once all of its calls have a result nothing of a turn changes.
  if (turn.kind === "user" || turn.calls.every((call) => call.result)) known.set(turn, part);
  return part;
}

function toPart(value: unknown): Part {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const put = (bytes: Uint8Array): unknown => {
    chunks.push(bytes);
    size += bytes.length;
    return { $b: [size - bytes.length, bytes.length] };
  };
  return { json: Buffer.from(JSON.stringify(encode(value, put))), chunks, size };
}

/** The calls of these ids, which are in the newest turns. */
function callsById({ turns }: SessionState, ids: readonly string[]): Map<string, Call> {
  const calls = new Map<string, Call>();
  for (let i = turns.length - 1; i >= 0 && calls.size < ids.length; i--) {
    const turn = turns[i]!;
    if (turn.kind !== "assistant") continue;
    for (const call of turn.calls) if (ids.includes(call.id)) calls.set(call.id, call);
  }
  return calls;
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
  const entries = Object.entries(value);
  if (entries.some(([key]) => NOT_PLAIN.has(key)))
    return { $o: entries.map(([key, item]) => [key, encode(item, put)]) };
  const plain: Record<string, unknown> = {};
  for (const [key, item] of entries) plain[key] = encode(item, put);
  return plain;
}

const NOT_PLAIN = new Set(["$n", "$b", "$m", "$s", "$o", "__proto__"]);

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
