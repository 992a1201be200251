import "reflect-metadata";
import { createPrivateKey, randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import {
  ALGORITHM,
  BACKDATE_MS,
  DAY_MS,
  exportKey,
  generateKeys,
  newSerial,
  provider,
  SIGNING,
  signAuthority,
} from "./certificate-parts.ts";
import { spiffeUri, TRUST_DOMAIN } from "./spiffe-id.ts";

type CryptoKey = webcrypto.CryptoKey;

/** The mesh's certificate authority. The key PEM is a secret of the highest grade. */
export interface Authority {
  certPem: string;
  keyPem: string;
}

/** A certificate with its key, PEM. */
export interface IssuedCertificate {
  certPem: string;
  keyPem: string;
  /** Epoch milliseconds. */
  notAfter: number;
}

/** What a certificate is issued for. */
export interface CertificateRequest {
  service: string;
  instance: string;
  /** Database role or the service's name. */
  commonName?: string;
  dnsNames?: string[];
  ips?: string[];
  lifeMs?: number;
  /** Start of validity, for tests of expiry. */
  notBefore?: Date;
  /** Servers without SPIFFE callers get "server", operators and clients "client", mesh services both. */
  usage?: "both" | "server" | "client";
}

/** Makes a new authority, valid for ten years. */
export async function createAuthority(): Promise<Authority> {
  const keys = await generateKeys();
  const name = `CN=Ganglion CA (${TRUST_DOMAIN}) ${randomBytes(4).toString("hex")}`;
  const cert = await signAuthority(name, keys);
  return { certPem: cert.toString("pem"), keyPem: await exportKey(keys.privateKey) };
}

/** Issues a certificate with a fresh key: one URI name (the SPIFFE id), localhost and 127.0.0.1. */
export async function issueCertificate(
  authority: Authority,
  request: CertificateRequest,
): Promise<IssuedCertificate> {
  const keys = await generateKeys();
  const issuer = new x509.X509Certificate(authority.certPem);
  const signingKey = await importKey(authority.keyPem);
  const notBefore = request.notBefore ?? new Date(Date.now() - BACKDATE_MS);
  const notAfter = new Date((request.notBefore?.getTime() ?? Date.now()) + (request.lifeMs ?? DAY_MS));
  const usage = request.usage ?? defaultUsage(request.service);
  const purposes = [
    ...(usage === "client" ? [] : [x509.ExtendedKeyUsage.serverAuth]),
    ...(usage === "server" ? [] : [x509.ExtendedKeyUsage.clientAuth]),
  ];
  const cert = await x509.X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      subject: [{ CN: [request.commonName ?? request.service] }],
      issuer: issuer.subject,
      notBefore,
      notAfter,
      signingAlgorithm: SIGNING,
      publicKey: keys.publicKey as never,
      signingKey: signingKey as never,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(purposes, false),
        new x509.SubjectAlternativeNameExtension([
          { type: "url", value: spiffeUri(request.service, request.instance) },
          ...(request.dnsNames ?? ["localhost"]).map((value) => ({ type: "dns" as const, value })),
          ...(request.ips ?? ["127.0.0.1"]).map((value) => ({ type: "ip" as const, value })),
        ]),
        await x509.AuthorityKeyIdentifierExtension.create(issuer, false, provider as never),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey as never, false, provider as never),
      ],
    },
    provider as never,
  );
  return {
    certPem: cert.toString("pem"),
    keyPem: await exportKey(keys.privateKey),
    notAfter: notAfter.getTime(),
  };
}

function defaultUsage(service: string): "both" | "server" | "client" {
  if (service === "operator" || service === "client") return "client";
  return service === "postgres" || service === "vault" ? "server" : "both";
}

function importKey(pem: string): Promise<CryptoKey> {
  const der = createPrivateKey(pem).export({ format: "der", type: "pkcs8" });
  return webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}
