import { createHash, randomBytes } from "node:crypto";

// The prefix lets scanners and people recognise one; the rest is 256 bits in base64url.
const FORM = /^gst_[A-Za-z0-9_-]{43}$/;

/** Makes a session token: 256 random bits that mean nothing but what the row with their hash says. */
export function newSessionToken(): string {
  return `gst_${randomBytes(32).toString("base64url")}`;
}

/** The hash under which a token is stored; undefined for a text that cannot be one (a JWT, two values, nothing). */
export function hashSessionToken(token: string | undefined): Buffer | undefined {
  if (token === undefined || !FORM.test(token)) return undefined;
  return createHash("sha256").update(token).digest();
}
