import type { GetSealingKeyResponse, SealedSecret } from "../../gen/ganglion/vault/v1/vault_service.ts";
import { bytesOf, purposeBytes, SEAL_INFO, type SealPurpose, sealSuite } from "./seal-format.ts";

/**
 * sealSecret encrypts a secret to mcp-proxy, for one vault and destination. Nothing between here and mcp-proxy can read
 * it, and nobody can move it elsewhere.
 */
export async function sealSecret(
  key: GetSealingKeyResponse,
  purpose: SealPurpose,
  secret: string,
): Promise<SealedSecret> {
  const suite = sealSuite();
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(bytesOf(key.publicKey)),
    info: SEAL_INFO,
  });
  const ciphertext = await sender.seal(bytesOf(secret), purposeBytes(purpose));
  return { keyId: key.keyId, enc: Buffer.from(sender.enc), ciphertext: Buffer.from(ciphertext) };
}
