import "reflect-metadata";
import { createECDH, hkdfSync, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
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
} from "../../common/tls/certificate-parts.ts";

type CryptoKey = webcrypto.CryptoKey;
type CryptoKeyPair = webcrypto.CryptoKeyPair;

/** Leaves are made anew when half of their life is over; sessions that nobody uses are forgotten with them. */
const LEAF_MS = DAY_MS;
const MAX_KEPT = 1000;
/** Order of the group of P-256. */
const ORDER = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");

/** Authorities, one for each session, that vouch for hosts towards the session's hands and nobody else. */
export interface SessionAuthorities {
  /** The authority's certificate. */
  pem(sessionId: string): Promise<string>;
  /** What a server for that host shows to a hand of the session. */
  context(sessionId: string, host: string): Promise<SecureContext>;
}

interface Authority {
  certificate: x509.X509Certificate;
  key: CryptoKey;
}

/**
 * Makes the authorities. A session's key follows from its id and a secret of mcp-proxy's, so that all replicas have the
 * same one and none is stored; the certificate around it may differ, to whoever verifies only name and key matter.
 */
export function createSessionAuthorities(secret: Buffer): SessionAuthorities {
  const authorities = new Map<string, Promise<Authority>>();
  const contexts = new Map<string, { made: Promise<SecureContext>; until: number }>();
  let leafKeys: Promise<CryptoKeyPair> | undefined;

  const authorityOf = (sessionId: string) =>
    remember(authorities, sessionId, () => makeAuthority(secret, sessionId));
  const makeContext = async (sessionId: string, host: string) => {
    leafKeys ??= generateKeys();
    const [authority, keys] = await Promise.all([authorityOf(sessionId), leafKeys]);
    const certificate = await issueLeaf(authority, keys.publicKey, host);
    const key = await exportKey(keys.privateKey);
    return createSecureContext({ cert: certificate.toString("pem"), key, minVersion: "TLSv1.2" });
  };
  return {
    pem: async (sessionId) => (await authorityOf(sessionId)).certificate.toString("pem"),
    context: (sessionId, host) => {
      const name = `${sessionId} ${host}`;
      const known = contexts.get(name);
      if (known && known.until > Date.now()) return known.made;
      contexts.delete(name);
      const until = Date.now() + LEAF_MS / 2;
      return remember(contexts, name, () => ({ made: makeContext(sessionId, host), until })).made;
    },
  };
}

/** Takes from the map, or makes and keeps; beyond the limit the oldest go. */
function remember<Value>(map: Map<string, Value>, name: string, make: () => Value): Value {
  const known = map.get(name);
  if (known) return known;
  const [oldest] = map.keys();
  if (map.size >= MAX_KEPT && oldest !== undefined) map.delete(oldest);
  const made = make();
  map.set(name, made);
  return made;
}

async function makeAuthority(secret: Buffer, sessionId: string): Promise<Authority> {
  const keys = await deriveKeys(secret, sessionId);
  return { certificate: await signAuthority(`CN=Ganglion egress ${sessionId}`, keys), key: keys.privateKey };
}

async function deriveKeys(secret: Buffer, sessionId: string): Promise<CryptoKeyPair> {
  // 48 bytes for a number below 2^256: what the remainder favours is beyond anybody's reach.
  const bits = hkdfSync("sha256", secret, "", `ganglion egress authority/v1\n${sessionId}`, 48);
  const scalar = (BigInt(`0x${Buffer.from(bits).toString("hex")}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex");
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(d);
  const point = ecdh.getPublicKey();
  const jwk = {
    kty: "EC",
    crv: "P-256",
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33, 65).toString("base64url"),
  };
  const { subtle } = webcrypto;
  const privateKey = await subtle.importKey("jwk", { ...jwk, d: d.toString("base64url") }, ALGORITHM, false, [
    "sign",
  ]);
  return { privateKey, publicKey: await subtle.importKey("jwk", jwk, ALGORITHM, true, ["verify"]) };
}

function issueLeaf(
  { certificate, key }: Authority,
  publicKey: CryptoKey,
  host: string,
): Promise<x509.X509Certificate> {
  return x509.X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      subject: [{ CN: ["Ganglion egress"] }],
      issuer: certificate.subject,
      notBefore: new Date(Date.now() - BACKDATE_MS),
      notAfter: new Date(Date.now() + LEAF_MS),
      signingAlgorithm: SIGNING,
      publicKey: publicKey as never,
      signingKey: key as never,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth], false),
        new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }]),
      ],
    },
    provider as never,
  );
}
