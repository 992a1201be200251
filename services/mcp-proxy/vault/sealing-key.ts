import { createHash } from "node:crypto";
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import type { SealOpener } from "../domain/records.ts";
import { VaultFailure } from "./vault-failure.ts";

const INFO = bytes("ganglion/credential/v1");

/** The key to which secrets are sealed. */
export interface SealingKey extends SealOpener {
  keyId: string;
  /** X25519, 32 bytes. */
  publicKey: Buffer;
}

function suite(): CipherSuite {
  return new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
}

/** Makes a key pair in the form in which it is kept in Vault. */
export async function generateSealingKey(): Promise<Record<string, string>> {
  const { kem } = suite();
  const pair = await kem.generateKeyPair();
  return {
    private_key: Buffer.from(await kem.serializePrivateKey(pair.privateKey)).toString("base64"),
    public_key: Buffer.from(await kem.serializePublicKey(pair.publicKey)).toString("base64"),
  };
}

/** Reads a key pair as kept in Vault. */
export async function openSealingKey(stored: Record<string, string>): Promise<SealingKey> {
  const publicKey = Buffer.from(stored.public_key ?? "", "base64");
  const privateBytes = Buffer.from(stored.private_key ?? "", "base64");
  if (publicKey.length !== 32 || privateBytes.length !== 32) throw new VaultFailure("malformed");
  const hpke = suite();
  const recipientKey = await hpke.kem.deserializePrivateKey(arrayBuffer(privateBytes));
  const keyId = `seal_${createHash("sha256").update(publicKey).digest("hex").slice(0, 16)}`;
  return {
    keyId,
    publicKey,
    open: async (sealed, { vaultId, purpose, destination }) => {
      if (sealed.keyId !== keyId || sealed.enc.length !== 32) return undefined;
      try {
        const context = { recipientKey, enc: arrayBuffer(sealed.enc), info: INFO };
        const aad = bytes([vaultId, purpose, destination].join("\n"));
        return Buffer.from(await hpke.open(context, arrayBuffer(sealed.ciphertext), aad));
      } catch {
        // Why it does not open is nobody's business.
        return undefined;
      }
    },
  };
}

function bytes(text: string): ArrayBuffer {
  return arrayBuffer(Buffer.from(text, "utf8"));
}

function arrayBuffer(view: Uint8Array): ArrayBuffer {
  return new Uint8Array(view).buffer;
}
