import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import type { GetSealingKeyResponse, SealedSecret } from "../../gen/ganglion/vault/v1/vault_service.ts";

const INFO = new TextEncoder().encode("ganglion/credential/v1");

/** What a secret is for. */
export interface SecretPurpose {
  readonly vaultId: string;
  readonly kind: "static_bearer" | "model_api_key";
  /** The destination exactly as in the request or, for a new secret, in the credential's record. */
  readonly url: string;
}

/**
 * sealSecret encrypts a secret to mcp-proxy, for one vault and destination. Nothing between here and mcp-proxy can read
 * it, and nobody can move it elsewhere.
 */
export async function sealSecret(
  key: GetSealingKeyResponse,
  { vaultId, kind, url }: SecretPurpose,
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
  const purpose = encoder.encode([vaultId, kind, url].join("\n"));
  const ciphertext = await sender.seal(copy(encoder.encode(secret)), copy(purpose));
  return { keyId: key.keyId, enc: Buffer.from(sender.enc), ciphertext: Buffer.from(ciphertext) };
}

/** A buffer of exactly these bytes: Node's may be a window on a larger one. */
function copy(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
