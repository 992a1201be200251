import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { spiffeIdOf } from "./spiffe-id.ts";

/**
 * The check of a Vault's certificate. Every service of a mesh has a certificate of the same authority that is good for
 * this machine, so the name alone would let any of them stand in for the vault and be given its tokens: a certificate
 * that carries an id of the mesh must be the vault's. A Vault outside the mesh has no such id; its name counts.
 */
export function checkVaultServer(host: string, certificate: PeerCertificate): Error | undefined {
  const wrongName = checkServerIdentity(host, certificate);
  if (wrongName) return wrongName;
  const id = spiffeIdOf(certificate);
  if (!id && certificate.subjectaltname?.includes("URI:spiffe://ganglion.local/")) {
    return new Error("the certificate's id is not a single one of the mesh");
  }
  if (!id || id.service === "vault") return undefined;
  return new Error(`expected the vault, got ${id.service}`);
}
