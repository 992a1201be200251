import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import type { GetSealingKeyResponse, SealedSecret } from "../../gen/ganglion/vault/v1/vault_service.ts";

const INFO = new TextEncoder().encode("ganglion/credential/v1");

/**
 * sealSecret encrypts a secret to mcp-proxy, for one vault. Nothing between here and mcp-proxy can read it, and nobody
 * can move it to another vault.
 */
export async function sealSecret(
  key: GetSealingKeyResponse,
  vaultId: string,
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
  const ciphertext = await sender.seal(copy(encoder.encode(secret)), copy(encoder.encode(vaultId)));
  return { keyId: key.keyId, enc: Buffer.from(sender.enc), ciphertext: Buffer.from(ciphertext) };
}

/** A buffer of exactly these bytes: Node's may be a window on a larger one. */
function copy(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
