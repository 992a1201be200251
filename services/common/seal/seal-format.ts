import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

/** What a secret is sealed for; one sealed for anything else does not open. */
export interface SealPurpose {
  readonly vaultId: string;
  /** The credential's kind, or "mcp_oauth." and the field. */
  readonly purpose: string;
  /** Server, token endpoint or variable, exactly as in the request or, for a change, in the credential's record. */
  readonly destination: string;
}

/** SEAL_INFO is what the keys of a seal are derived for. */
export const SEAL_INFO: ArrayBuffer = bytesOf("ganglion/credential/v1");

/** sealSuite makes the suite of HPKE that both sides use. */
export function sealSuite(): CipherSuite {
  return new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });
}

/** purposeBytes is what a seal authenticates beside the secret. */
export function purposeBytes({ vaultId, purpose, destination }: SealPurpose): ArrayBuffer {
  return bytesOf([vaultId, purpose, destination].join("\n"));
}

/** bytesOf makes a buffer of exactly these bytes, as the library wants it: Node's may be a window on a larger one. */
export function bytesOf(data: string | Uint8Array): ArrayBuffer {
  return Uint8Array.from(typeof data === "string" ? Buffer.from(data, "utf8") : data).buffer;
}
