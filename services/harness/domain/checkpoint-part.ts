import { type Bytes, decodeValue, encodeValue, type Mark } from "./checkpoint-values.ts";

const HEAD_BYTES = 8;

/** Where bytes stand in the text of a conversation's beginning, which a part may point into instead of having its own. */
export type Places = WeakMap<Uint8Array, number>;

/** Writes a value down: two lengths, its JSON, and the bytes that the JSON points to. */
export function writePart(value: unknown, places?: Places): Buffer {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const put = (bytes: Uint8Array): Mark => {
    const at = places?.get(bytes);
    if (at !== undefined) return { $t: [at, bytes.length] };
    chunks.push(bytes);
    size += bytes.length;
    return { $b: [size - bytes.length, bytes.length] };
  };
  const json = Buffer.from(JSON.stringify(encodeValue(value, put)));
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(json.length);
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, json, ...chunks]);
}

/** Reads a value back. */
export function readPart(part: Buffer, text?: Buffer): unknown {
  const end = HEAD_BYTES + part.readUInt32LE(0);
  const bytes: Bytes = { own: part.subarray(end), text };
  return decodeValue(JSON.parse(part.toString("utf8", HEAD_BYTES, end)), bytes);
}

/** Takes parts that stand one behind the other apart. Throws when the last one is not whole. */
export function splitParts(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + HEAD_BYTES + bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4);
    if (end > bytes.length) throw new Error("out of bounds");
    parts.push(bytes.subarray(at, end));
    at = end;
  }
  return parts;
}
