import { promisify } from "node:util";
import { deflateRaw, inflateRaw, inflateRawSync } from "node:zlib";
import type { ReadState, WrittenState } from "../domain/checkpoint.ts";
import { sha256 } from "../domain/sha256.ts";

const DIGEST_BYTES = 32;
/** Length of a part, and its length as it is stored; the same for one that is stored as it is. */
const LENGTHS_BYTES = 8;
const HEAD_BYTES = DIGEST_BYTES + 3 * LENGTHS_BYTES;
const MAX_STATE_BYTES = 512 * 1024 * 1024;
/** What is shorter is not worth the time. */
const WORTH_BYTES = 4 * 1024;
/** What is shorter is unpacked at once; with more, other sessions of the process go on meanwhile. */
const SHORT_BYTES = 16 * 1024 * 1024;
const LEVEL = 3;

const pack = promisify(deflateRaw);
const unpack = promisify(inflateRaw);

/** Packs a state as it is kept: the digest of all that follows, the lengths of the parts, the parts. */
export async function packState({ head, text, older }: WrittenState): Promise<Buffer> {
  const parts = [head, text, older];
  const packed = await Promise.all(
    parts.map((part) => (part.length < WORTH_BYTES ? part : pack(part, { level: LEVEL }))),
  );
  const begin = Buffer.alloc(HEAD_BYTES);
  for (const [i, part] of parts.entries()) {
    begin.writeUInt32LE(part.length, DIGEST_BYTES + i * LENGTHS_BYTES);
    begin.writeUInt32LE(packed[i]!.length, DIGEST_BYTES + i * LENGTHS_BYTES + 4);
  }
  const whole = Buffer.concat([begin, ...packed]);
  sha256(whole.subarray(DIGEST_BYTES)).copy(whole);
  return whole;
}

/** Unpacks what packState() made, the older turns when they are asked for. Throws for anything else. */
export async function unpackState(data: Uint8Array): Promise<ReadState> {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  if (
    bytes.length < HEAD_BYTES ||
    !sha256(bytes.subarray(DIGEST_BYTES)).equals(bytes.subarray(0, DIGEST_BYTES))
  )
    throw new Error("a checkpoint is damaged");
  const parts: Packed[] = [];
  let from = HEAD_BYTES;
  for (let at = DIGEST_BYTES; at < HEAD_BYTES; at += LENGTHS_BYTES) {
    const to = from + bytes.readUInt32LE(at + 4);
    parts.push({ length: bytes.readUInt32LE(at), stored: bytes.subarray(from, to) });
    from = to;
  }
  const [head, text, older] = parts as [Packed, Packed, Packed];
  if (from !== bytes.length || head.length + text.length + older.length > MAX_STATE_BYTES)
    throw new Error("a checkpoint does not have the length that it says");
  return { head: await unpacked(head), text: await unpacked(text), older: () => unpackedNow(older) };
}

interface Packed {
  length: number;
  stored: Buffer;
}

async function unpacked(part: Packed): Promise<Buffer> {
  return part.length < SHORT_BYTES
    ? unpackedNow(part)
    : whole(part, await unpack(part.stored, optionsOf(part)));
}

function unpackedNow(part: Packed): Buffer {
  if (part.length < WORTH_BYTES) return whole(part, part.stored);
  return whole(part, inflateRawSync(part.stored, optionsOf(part)));
}

/** All of it in one piece: it is not copied together. */
function optionsOf({ length }: Packed): { chunkSize: number; maxOutputLength: number } {
  return { chunkSize: length + 1, maxOutputLength: length };
}

function whole({ length }: Packed, bytes: Buffer): Buffer {
  if (bytes.length !== length)
    throw new Error("a part of a checkpoint does not have the length that it says");
  return bytes;
}
