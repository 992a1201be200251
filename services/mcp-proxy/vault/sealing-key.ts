import { createHash } from "node:crypto";
import { bytesOf, purposeBytes, SEAL_INFO, sealSuite } from "../../common/seal/seal-format.ts";
import type { SealOpener } from "../domain/records.ts";
import { VaultFailure } from "./vault-failure.ts";

/** The key to which secrets are sealed. */
export interface SealingKey extends SealOpener {
  keyId: string;
  /** X25519, 32 bytes. */
  publicKey: Buffer;
}

/** Makes a key pair in the form in which it is kept in Vault. */
export async function generateSealingKey(): Promise<Record<string, string>> {
  const { kem } = sealSuite();
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
  const hpke = sealSuite();
  const recipientKey = await hpke.kem.deserializePrivateKey(bytesOf(privateBytes));
  const keyId = `seal_${createHash("sha256").update(publicKey).digest("hex").slice(0, 16)}`;
  return {
    keyId,
    publicKey,
    open: async (sealed, purpose) => {
      if (sealed.keyId !== keyId || sealed.enc.length !== 32) return undefined;
      try {
        const context = { recipientKey, enc: bytesOf(sealed.enc), info: SEAL_INFO };
        return Buffer.from(await hpke.open(context, bytesOf(sealed.ciphertext), purposeBytes(purpose)));
      } catch {
        // Why it does not open is nobody's business.
        return undefined;
      }
    },
  };
}
