import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";

/** Keys by which checkpoints of a log may be signed. */
export interface PublicKeys {
  readonly logId: string;
  /** By key id in hex. */
  readonly keys: ReadonlyMap<string, KeyObject>;
}

/** What keys.json is not. */
export class KeysInvalid extends Error {
  override readonly name = "KeysInvalid";
}

// DER of an Ed25519 public key up to its 32 bytes (RFC 8410).
const SPKI_HEAD = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Reads keys.json. The first key is taken on trust, every other one must have been signed by the one before it; the file
 * as a whole is only as good as the place that it comes from.
 */
export function readPublicKeys(text: string): PublicKeys {
  const { log_id: logId, keys: list } = parse(text);
  const keys = new Map<string, KeyObject>();
  let before: { id: string; key: KeyObject } | undefined;
  for (const { key_id: id, vkey, created_at: createdAt, signed_by: signedBy, signature } of list) {
    const key = readVkey(vkey, `ganglion/${logId}`, id);
    if (before) {
      const said = Buffer.from(`ganglion audit key v1\n${vkey}\n${createdAt}\n`);
      const isSigned =
        signedBy === before.id &&
        typeof signature === "string" &&
        verify(null, said, before.key, Buffer.from(signature, "base64"));
      if (!isSigned) throw new KeysInvalid(`key ${id} is not signed by the one before it`);
    } else if (signedBy !== undefined || signature !== undefined) {
      throw new KeysInvalid(`key ${id} stands first but names another that signed it`);
    }
    if (keys.has(id)) throw new KeysInvalid(`key ${id} is there twice`);
    keys.set(id, key);
    before = { id, key };
  }
  if (keys.size === 0) throw new KeysInvalid("there is no key");
  return { logId, keys };
}

/** The id of a key in hex, as C2SP signed-note computes it. */
export function keyId(name: string, publicKey: Buffer): string {
  const of = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(1), publicKey]);
  return createHash("sha256").update(of).digest("hex").slice(0, 8);
}

function readVkey(vkey: unknown, name: string, id: unknown): KeyObject {
  const [keyName, idText, encoded, ...more] = typeof vkey === "string" ? splitVkey(vkey) : [];
  const raw = Buffer.from(encoded ?? "", "base64");
  const isSound = keyName === name && idText === id && more.length === 0 && raw.length === 33 && raw[0] === 1;
  if (!isSound || keyId(name, raw.subarray(1)) !== id) {
    throw new KeysInvalid("a key is not a verifier key of this log");
  }
  return createPublicKey({ key: Buffer.concat([SPKI_HEAD, raw.subarray(1)]), format: "der", type: "spki" });
}

/** Base64 has plus signs of its own: only the first two separate. */
function splitVkey(vkey: string): string[] {
  const first = vkey.indexOf("+");
  const second = vkey.indexOf("+", first + 1);
  if (first < 0 || second < 0) return [];
  return [vkey.slice(0, first), vkey.slice(first + 1, second), vkey.slice(second + 1)];
}

interface KeyEntry {
  key_id: string;
  vkey: string;
  created_at: string;
  signed_by?: string;
  signature?: string;
}

function parse(text: string): { log_id: string; keys: KeyEntry[] } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new KeysInvalid("not JSON");
  }
  const { v, log_id: logId, keys } = (value ?? {}) as Record<string, unknown>;
  if (v !== 1 || typeof logId !== "string" || !/^log_[0-9a-f]{32}$/.test(logId) || !Array.isArray(keys)) {
    throw new KeysInvalid("not a key file of version 1");
  }
  for (const key of keys) {
    const entry = key as Partial<KeyEntry> | null;
    if (typeof entry?.key_id !== "string" || typeof entry.created_at !== "string") {
      throw new KeysInvalid("a key without id or time");
    }
  }
  return { log_id: logId, keys: keys as KeyEntry[] };
}
