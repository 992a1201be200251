import { createHmac } from "node:crypto";

/** What every placeholder begins with. */
export const PLACEHOLDER_PREFIX = "ganglion_placeholder_";
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const CHARS = 26;

/** Every placeholder has this many bytes. */
export const PLACEHOLDER_BYTES = PLACEHOLDER_PREFIX.length + CHARS;

/** Gives the placeholder that stands for a credential in a session. */
export type PlaceholderOf = (sessionId: string, credentialId: string) => string;

/**
 * Makes placeholders: 130 bits that follow from session, credential and a key, so that every replica knows them and none
 * is stored. One says nothing about the secret, and means nothing in another session.
 */
export function createPlaceholders(key: Buffer): PlaceholderOf {
  return (sessionId, credentialId) => {
    const digest = createHmac("sha256", key)
      .update(JSON.stringify(["placeholder/v1", sessionId, credentialId]))
      .digest();
    let bits = BigInt(`0x${digest.toString("hex")}`);
    let text = "";
    for (let i = 0; i < CHARS; i += 1) {
      text += ALPHABET[Number(bits & 31n)];
      bits >>= 5n;
    }
    return PLACEHOLDER_PREFIX + text;
  };
}
