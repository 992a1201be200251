import { createHash, verify } from "node:crypto";
import type { PublicKeys } from "./public-keys.ts";

/** A checkpoint whose signature is right. */
export interface Checkpoint {
  readonly size: bigint;
  /** Hash of the record at that place, in hex. */
  readonly head: string;
  /** Digest of the checkpoint before. */
  readonly prev: string;
  readonly time: string;
  /** SHA-256 of the signed text. */
  readonly digest: string;
}

/** Why a note does not count. */
export class NoteInvalid extends Error {
  override readonly name = "NoteInvalid";
}

const BODY =
  /^(ganglion\/log_[0-9a-f]{32})\n([1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\nprev ([0-9a-f]{64})\ntime ([^\n]+)\n$/;
const SIGNATURE = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/;

/**
 * Splits a file of notes: each is a text, an empty line, signature lines, and an empty line before the next. A note
 * without signatures at the end was being written when its process died, and is left out.
 */
export function splitNotes(content: string): string[] {
  const blocks = content.split("\n\n").filter((block) => block.trim() !== "");
  const notes: string[] = [];
  for (let i = 0; i + 1 < blocks.length; i += 2) {
    notes.push(
      `${(blocks[i] as string).replace(/^\n+/, "")}\n\n${(blocks[i + 1] as string).replace(/\n+$/, "")}\n`,
    );
  }
  return notes;
}

/** Opens a note: some key that is known must have signed it, and no known one wrongly. */
export function openNote(note: string, { logId, keys }: PublicKeys): Checkpoint {
  const end = note.indexOf("\n\n");
  if (end < 0) throw new NoteInvalid("has no signature");
  const text = note.slice(0, end + 1);
  const [, origin, size, head, prev, time] = BODY.exec(text) ?? [];
  if (!origin || !size || !head || !prev || !time) throw new NoteInvalid("is not a checkpoint");
  if (origin !== `ganglion/${logId}`) throw new NoteInvalid("is of another log");
  let isSigned = false;
  for (const line of note.slice(end + 2).split("\n")) {
    if (line === "") continue;
    const [, name, encoded] = SIGNATURE.exec(line) ?? [];
    if (!name || !encoded) throw new NoteInvalid("has a line that is no signature");
    const raw = Buffer.from(encoded, "base64");
    const key = name === origin ? keys.get(raw.subarray(0, 4).toString("hex")) : undefined;
    if (!key) continue;
    if (!verify(null, Buffer.from(text), key, raw.subarray(4)))
      throw new NoteInvalid("has a wrong signature");
    isSigned = true;
  }
  if (!isSigned) throw new NoteInvalid("is signed by no known key");
  return {
    size: BigInt(size),
    head: Buffer.from(head, "base64").toString("hex"),
    prev,
    time,
    digest: createHash("sha256").update(text).digest("hex"),
  };
}
