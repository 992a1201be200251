import type { PeerCertificate } from "node:tls";
import { spiffeIdOf } from "./spiffe-id.ts";

/**
 * A checkServerIdentity that wants one service of the mesh. It replaces the check of the host
 * name: in a mesh addresses move, and what matters is who answers. TLS has already verified the
 * certificate against the mesh's authority when this is asked.
 */
export function expectService(
  service: string,
): (host: string, certificate: PeerCertificate) => Error | undefined {
  return (_host, certificate) => {
    const id = spiffeIdOf(certificate);
    if (id?.service === service) return undefined;
    return new Error(`expected a ${service} of the mesh, got ${id ? id.service : "no identity"}`);
  };
}
