import "reflect-metadata";
import { createPrivateKey, randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Clocks of two machines disagree a little: a fresh certificate is valid a little before it was made. */
const SKEW_MS = 5 * 60_000;

/** A certificate and its private key (PKCS #8), as PEM. */
export interface Identity {
  readonly certPem: string;
  readonly keyPem: string;
}

/** What a leaf certificate says. */
export interface LeafRequest {
  /** The one URI SAN, the SPIFFE id; left out only for servers that no service authenticates by it. */
  readonly uri?: string;
  readonly cn: string;
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  /** Life in days; 1 by default. */
  readonly days?: number;
}

/** createAuthority makes a private certificate authority, valid for ten years. */
export async function createAuthority(name = "Ganglion private CA"): Promise<Identity> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=${name}`,
    notBefore: new Date(now - SKEW_MS),
    notAfter: new Date(now + 3650 * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: pem(certificate), keyPem: await exportKey(keys.privateKey) };
}

/** issueLeaf makes a certificate for one process, good as server and as client. */
export async function issueLeaf(
  authority: Identity,
  request: LeafRequest,
): Promise<Identity & { notAfter: Date }> {
  const issuer = new x509.X509Certificate(authority.certPem);
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const now = Date.now();
  const notAfter = new Date(now + (request.days ?? 1) * DAY_MS);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: [{ CN: [request.cn] }],
    issuer: issuer.subject,
    notBefore: new Date(now - SKEW_MS),
    notAfter,
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.keyPem),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        x509.ExtendedKeyUsage.clientAuth,
      ]),
      new x509.SubjectAlternativeNameExtension(alternativeNames(request)),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: pem(certificate), keyPem: await exportKey(keys.privateKey), notAfter };
}

function alternativeNames(request: LeafRequest): x509.JsonGeneralNames {
  return [
    ...(request.uri ? [{ type: "url" as const, value: request.uri }] : []),
    ...(request.dns ?? ["localhost"]).map((value) => ({ type: "dns" as const, value })),
    ...(request.ip ?? ["127.0.0.1"]).map((value) => ({ type: "ip" as const, value })),
  ];
}

function serial(): string {
  // 16 random octets, the first one positive and not zero, as RFC 5280 wants it.
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return bytes.toString("hex");
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString("pem")}\n`;
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" })
    .export({ type: "pkcs8", format: "pem" })
    .toString();
}

async function importKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(keyPem).export({ type: "pkcs8", format: "der" });
  return webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}
