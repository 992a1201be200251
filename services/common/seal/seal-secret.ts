import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import type { GetSealingKeyResponse, SealedSecret } from "../../gen/ganglion/vault/v1/vault_service.ts";

const INFO = new TextEncoder().encode("ganglion/credential/v1");

/** What a secret is for. */
export interface SealPurpose {
  readonly vaultId: string;
  /** The credential's kind, or "mcp_oauth." and the field. */
  readonly purpose: string;
  /** Server, token endpoint or variable, exactly as in the request or, for a change, in the credential's record. */
  readonly destination: string;
}

/**
 * sealSecret encrypts a secret to mcp-proxy, for one vault and destination. Nothing between here and mcp-proxy can read
 * it, and nobody can move it elsewhere.
 */
export async function sealSecret(
  key: GetSealingKeyResponse,
  { vaultId, purpose, destination }: SealPurpose,
  secret: string,
): Promise<SealedSecret> {
  const suite = new CipherSuite({
    kem: new DhkemX25519HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes256Gcm(),
  });
  const encoder = new TextEncoder();
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(copy(key.publicKey)),
    info: copy(INFO),
  });
  const aad = encoder.encode([vaultId, purpose, destination].join("\n"));
  const ciphertext = await sender.seal(copy(encoder.encode(secret)), copy(aad));
  return { keyId: key.keyId, enc: Buffer.from(sender.enc), ciphertext: Buffer.from(ciphertext) };
}

/** A buffer of exactly these bytes: Node's may be a window on a larger one. */
function copy(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
