import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { keyIdOf, type NoteKey, originOf, vkeyOf } from "../domain/signed-note.ts";
import { readFields, readOrCreate } from "./proxy-keys.ts";
import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

/** One of the keys that sign checkpoints. */
export interface CheckpointKey {
  name: string;
  keyId: string;
  vkey: string;
  createdAt: string;
  privateKey: KeyObject;
  publicKey: KeyObject;
  /** Key id of the one before, which signed this one; absent on the first. */
  signedBy?: string;
  /** Base64 of that signature. */
  signature?: string;
}

/** More keys than a log can come to in centuries; a loop that cannot run away. */
const MAX_KEYS = 1000;
const MAX_AGE_MS = 90 * 24 * 3_600_000;

/**
 * Reads the keys that sign this log's checkpoints, oldest first; the first process that finds none makes one, and a key
 * that is 90 days old gets a successor. Each is a document of its own at Vault, because mcp-proxy may make one there and
 * never replace it. A key is signed by the one before it.
 */
export async function loadCheckpointKeys(
  client: VaultClient,
  { mount, token, logId, now = Date.now() }: { mount: string; token: string; logId: string; now?: number },
): Promise<CheckpointKey[]> {
  const keys: CheckpointKey[] = [];
  const pathOf = (number: number) => `${mount}/data/proxy/checkpoint-key-${number}`;
  const take = (fields: Record<string, string>) => keys.push(toKey(fields, logId, keys.at(-1)));
  for (let number = 1; number <= MAX_KEYS; number += 1) {
    const found = await readFields(client, pathOf(number), token);
    if (found) take(found);
    else if (number === 1 || isOld(keys.at(-1), now)) {
      take(await readOrCreate(client, pathOf(number), token, async () => makeKey(now)));
    } else break;
  }
  return keys;
}

function isOld(key: CheckpointKey | undefined, now: number): boolean {
  return key !== undefined && now - Date.parse(key.createdAt) > MAX_AGE_MS;
}

function makeKey(now: number): Record<string, string> {
  const { privateKey } = generateKeyPairSync("ed25519");
  const key = privateKey.export({ format: "der", type: "pkcs8" }).toString("base64");
  return { private_key: key, created_at: new Date(now).toISOString() };
}

function toKey(fields: Record<string, string>, logId: string, before?: CheckpointKey): CheckpointKey {
  const privateKey = readPrivateKey(fields.private_key);
  const createdAt = fields.created_at ?? "";
  const publicKey = createPublicKey(privateKey);
  if (privateKey.asymmetricKeyType !== "ed25519" || Number.isNaN(Date.parse(createdAt)))
    throw new VaultFailure("malformed");
  const name = originOf(logId);
  const vkey = vkeyOf(name, publicKey);
  const key = { name, keyId: keyIdOf(name, publicKey), vkey, createdAt, privateKey, publicKey };
  if (!before) return key;
  // Ed25519 signs the same text always alike: nothing has to be kept.
  const statement = Buffer.from(`ganglion audit key v1\n${vkey}\n${createdAt}\n`);
  const signature = sign(null, statement, before.privateKey).toString("base64");
  return { ...key, signedBy: before.keyId, signature };
}

function readPrivateKey(text = ""): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(text, "base64"), format: "der", type: "pkcs8" });
  } catch {
    // What it says could quote the key.
    throw new VaultFailure("malformed");
  }
}

/** The keys of this log as the signer and AuditService use them. */
export interface KeyRing {
  /** Oldest first. */
  all(): readonly CheckpointKey[];
  publicKeys(): NoteKey[];
  signer(): NoteKey;
  /** Reads them again: another replica may have made one, or the newest may be due for a successor. */
  reload(): Promise<void>;
}

/** Reads the keys and keeps them. */
export async function openKeyRing(
  client: VaultClient,
  options: { mount: string; token: () => string; logId: string },
): Promise<KeyRing> {
  const load = () => loadCheckpointKeys(client, { ...options, token: options.token() });
  let keys = await load();
  return {
    all: () => keys,
    publicKeys: () => keys.map(({ name, keyId, publicKey: key }) => ({ name, keyId, key })),
    signer: () => {
      const { name, keyId, privateKey: key } = keys.at(-1) as CheckpointKey;
      return { name, keyId, key };
    },
    reload: async () => {
      keys = await load();
    },
  };
}
