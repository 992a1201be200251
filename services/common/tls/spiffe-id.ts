import type { PeerCertificate } from "node:tls";

/** The mesh's trust domain. */
export const TRUST_DOMAIN = "ganglion.local";

/** Who a certificate speaks for. */
export interface SpiffeId {
  /** The whole id, `spiffe://ganglion.local/session/session-1`. */
  uri: string;
  service: string;
  instance: string;
  /** SHA-256 (hexadecimal) of the certificate that says so; absent when the id comes from elsewhere. */
  certSha256?: string;
}

const FORM = /^spiffe:\/\/ganglion\.local\/([a-z][a-z0-9-]{0,31})\/([A-Za-z0-9][A-Za-z0-9._-]{0,63})$/;

/** Writes the id of an instance of a service. */
export function spiffeUri(service: string, instance: string): string {
  const uri = `spiffe://${TRUST_DOMAIN}/${service}/${instance}`;
  if (!FORM.test(uri)) throw new Error(`not a SPIFFE id of the mesh: ${uri}`);
  return uri;
}

/** Parses an id of our trust domain; undefined for anything else. */
export function parseSpiffeUri(uri: string): SpiffeId | undefined {
  const match = FORM.exec(uri);
  return match?.[1] && match[2] ? { uri, service: match[1], instance: match[2] } : undefined;
}

/** The id in a verified certificate, with the digest of that certificate; as strict as spiffeIdOf. */
export function spiffeIdWithDigest(
  certificate: Pick<PeerCertificate, "subjectaltname" | "fingerprint256">,
): SpiffeId | undefined {
  const id = spiffeIdOf(certificate);
  return id && { ...id, certSha256: certificate.fingerprint256.replaceAll(":", "").toLowerCase() };
}

/**
 * The id in a verified certificate: it must carry exactly one URI name, and that one must be of
 * our trust domain. Anything else gives undefined, and so may do nothing.
 */
export function spiffeIdOf(certificate: Pick<PeerCertificate, "subjectaltname">): SpiffeId | undefined {
  const names = certificate.subjectaltname;
  // Node quotes a name with characters that could be mistaken for a separator; ours have none.
  if (!names || names.includes('"')) return undefined;
  const uris = names.split(", ").filter((name) => name.startsWith("URI:"));
  const only = uris[0];
  return uris.length === 1 && only ? parseSpiffeUri(only.slice("URI:".length)) : undefined;
}
