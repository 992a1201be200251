import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Tells whether a presented value is the secret. */
export type SecretCheck = (presented: string | undefined) => boolean;

/** createSecretCheck keeps only a digest of the secret and compares in constant time. Without a secret nothing passes. */
export function createSecretCheck(secret: string | undefined): SecretCheck {
  if (!secret) return () => false;
  const expected = digest(secret);
  return (presented) => presented !== undefined && timingSafeEqual(digest(presented), expected);
}

/** bearerOf returns the token of an `authorization: Bearer` header; undefined for any other form. */
export function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  return /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
}

function digest(value: string): Buffer {
  return createHash("sha256").update(value).digest();
}
