import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decrypt, encrypt } from "./cipher.ts";
import { writeDurably } from "./write-durably.ts";

const KEY_BYTES = 32;

/** NewKeys are the keys of a vault that is being made. */
export interface NewKeys {
  readonly unsealKey: Buffer;
  readonly barrierKey: Buffer;
  readonly keep: () => void;
}

/** Seal keeps the barrier key: encrypted by the root key, which the unseal key (one share) encrypts. */
export class Seal {
  readonly #path: string;

  constructor(dataDir: string) {
    this.#path = join(dataDir, "seal.json");
  }

  /** isInitialized tells whether keys were ever made for this data folder. */
  isInitialized(): boolean {
    return existsSync(this.#path);
  }

  /** makeKeys makes all keys in memory; nothing counts until `keep` has written them. The unseal key is stored nowhere. */
  makeKeys(): NewKeys {
    const unsealKey = randomBytes(KEY_BYTES);
    const rootKey = randomBytes(KEY_BYTES);
    const barrierKey = randomBytes(KEY_BYTES);
    const file = {
      version: 1,
      rootKey: encrypt(unsealKey, rootKey, "seal/root-key").toString("base64"),
      barrierKey: encrypt(rootKey, barrierKey, "seal/barrier-key").toString("base64"),
    };
    rootKey.fill(0);
    const keep = () => writeDurably(this.#path, Buffer.from(JSON.stringify(file)));
    return { unsealKey, barrierKey, keep };
  }

  /** open returns the barrier key, or undefined when the unseal key is not the right one. */
  open(unsealKey: Buffer): Buffer | undefined {
    if (unsealKey.length !== KEY_BYTES) return undefined;
    const file = JSON.parse(readFileSync(this.#path, "utf8")) as { rootKey: string; barrierKey: string };
    try {
      const rootKey = decrypt(unsealKey, Buffer.from(file.rootKey, "base64"), "seal/root-key");
      return decrypt(rootKey, Buffer.from(file.barrierKey, "base64"), "seal/barrier-key");
    } catch {
      return undefined;
    }
  }

  /** clusterId names this data folder; not secret. */
  clusterId(): string {
    const hex = createHash("sha256").update(readFileSync(this.#path)).digest("hex");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
      "-",
    );
  }
}

/** readKeyShare reads the unseal key from its hex or base64 form. */
export function readKeyShare(share: string): Buffer {
  if (/^[0-9a-f]{64}$/i.test(share)) return Buffer.from(share, "hex");
  return Buffer.from(share, "base64");
}
