import { createHash, type KeyObject, sign, verify } from "node:crypto";

/** What a checkpoint says. */
export interface CheckpointText {
  logId: string;
  /** Sequence of the last record that it covers. */
  size: bigint;
  /** That record's hash. */
  headHash: string;
  /** Digest of the checkpoint before. */
  prev: string;
  time: Date;
}

/** A checkpoint that was read. */
export interface Checkpoint extends Omit<CheckpointText, "time"> {
  /** The whole signed note. */
  note: string;
  /** SHA-256 of what is signed; the next checkpoint names it. */
  digest: string;
}

/** One half of a signature key, with the names it goes by. */
export interface NoteKey {
  /** Key name, which is the log's origin. */
  name: string;
  /** 8 hexadecimal digits. */
  keyId: string;
  key: KeyObject;
}

const ED25519 = Buffer.from([1]);
const TEXT =
  /^ganglion\/(log_[0-9a-f]{32})\n(0|[1-9]\d{0,18})\n([A-Za-z0-9+/]{43}=)\nprev ([0-9a-f]{64})\ntime [^\n]+\n$/;

/** The name under which a log signs. */
export function originOf(logId: string): string {
  return `ganglion/${logId}`;
}

/** The 32 bytes of an Ed25519 public key. */
function rawPublicKey(key: KeyObject): Buffer {
  return key.export({ format: "der", type: "spki" }).subarray(-32);
}

/** The key id of C2SP signed-note: four bytes, in hexadecimal. */
export function keyIdOf(name: string, publicKey: KeyObject): string {
  const bytes = Buffer.concat([Buffer.from(`${name}\n`), ED25519, rawPublicKey(publicKey)]);
  return createHash("sha256").update(bytes).digest("hex").slice(0, 8);
}

/** A public key as C2SP signed-note writes it. */
export function vkeyOf(name: string, publicKey: KeyObject): string {
  const bytes = Buffer.concat([ED25519, rawPublicKey(publicKey)]).toString("base64");
  return `${name}+${keyIdOf(name, publicKey)}+${bytes}`;
}

/** Makes a signed checkpoint. */
export function signCheckpoint(what: CheckpointText, { name, keyId, key }: NoteKey): Checkpoint {
  const { logId, size, headHash, prev, time } = what;
  const head = Buffer.from(headHash, "hex").toString("base64");
  const text = `${originOf(logId)}\n${size}\n${head}\nprev ${prev}\ntime ${time.toISOString()}\n`;
  const signature = Buffer.concat([Buffer.from(keyId, "hex"), sign(null, Buffer.from(text), key)]);
  const note = `${text}\n— ${name} ${signature.toString("base64")}\n`;
  return { logId, size, headHash, prev, note, digest: digestOf(text) };
}

/** Reads a note; undefined when it is no checkpoint of ours. Says nothing about its signature. */
export function parseCheckpoint(note: string): Checkpoint | undefined {
  const text = textOf(note);
  const [, logId = "", size = "", head = "", prev = ""] = TEXT.exec(text) ?? [];
  if (logId === "") return undefined;
  const headHash = Buffer.from(head, "base64").toString("hex");
  return { logId, size: BigInt(size), headHash, prev, note, digest: digestOf(text) };
}

/** True when one of the keys signed the note. */
export function isSigned(note: string, keys: readonly NoteKey[]): boolean {
  const text = textOf(note);
  const lines = note.slice(text.length + 1).split("\n");
  return lines.some((line) => {
    const [dash, name, base64 = ""] = line.split(" ");
    const bytes = Buffer.from(base64, "base64");
    if (dash !== "—" || bytes.length !== 68) return false;
    const keyId = bytes.subarray(0, 4).toString("hex");
    return keys.some(
      (known) =>
        known.name === name &&
        known.keyId === keyId &&
        verify(null, Buffer.from(text), known.key, bytes.subarray(4)),
    );
  });
}

/** What is signed: everything before the empty line. */
function textOf(note: string): string {
  const end = note.indexOf("\n\n");
  return end === -1 ? "" : note.slice(0, end + 1);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
