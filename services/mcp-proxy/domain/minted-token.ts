const ALWAYS = ["access_token", "refresh_token", "id_token"];
const WITH_EXPIRY = ["token", "secret"];
const EXPIRY = ["expires_at", "expires_in", "expiration"];

/**
 * True for a JSON document that is a new credential (case A066): an OAuth token answer, or a token with an expiry. What is
 * inside it would be a credential in the hand.
 */
export function isMintedToken(json: Buffer): boolean {
  let value: unknown;
  try {
    value = JSON.parse(json.toString("utf8"));
  } catch {
    return false;
  }
  if (typeof value !== "object" || value === null) return false;
  const has = (name: string) => Object.hasOwn(value, name);
  const isText = (name: string) => has(name) && typeof (value as Record<string, unknown>)[name] === "string";
  return ALWAYS.some(isText) || (WITH_EXPIRY.some(isText) && EXPIRY.some(has));
}
