import "reflect-metadata";
import { createPrivateKey, randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

type CryptoKey = webcrypto.CryptoKey;
type CryptoKeyPair = webcrypto.CryptoKeyPair;

/** Keys of everything that is issued here. */
export const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
/** Signatures on everything that is issued here. */
export const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;
/** One day. */
export const DAY_MS = 24 * 3600 * 1000;
/** Certificates begin so long before now: clocks of other machines may be a little behind. */
export const BACKDATE_MS = 5 * 60 * 1000;
/** Where the library finds its cryptography. Library-typed globals and Node's webcrypto describe the same objects. */
export const provider = webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0];

/** Makes the certificate of an authority that vouches for itself, valid for ten years. */
export async function signAuthority(name: string, keys: CryptoKeyPair): Promise<x509.X509Certificate> {
  return x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name,
      notBefore: new Date(Date.now() - BACKDATE_MS),
      notAfter: new Date(Date.now() + 3653 * DAY_MS),
      signingAlgorithm: SIGNING,
      keys: keys as never,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey as never, false, provider as never),
      ],
    },
    provider as never,
  );
}

/** Makes a new pair of keys. */
export function generateKeys(): Promise<CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

/** A private key as PEM. */
export async function exportKey(key: CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" })
    .export({ format: "pem", type: "pkcs8" })
    .toString();
}

/** A new serial number: positive, 16 bytes, without a leading zero. */
export function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}
