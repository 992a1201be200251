const ALWAYS = ["access_token", "refresh_token", "id_token"];
const WITH_EXPIRY = ["token", "secret"];
const EXPIRY = ["expires_at", "expires_in", "expiration"];

/**
 * True for a JSON document that is a new credential (case A066): an OAuth token answer, a token with an expiry, or one that
 * has a text in one of `fields`, at any depth. What is inside it would be a credential in the hand.
 */
export function isMintedToken(json: Buffer, fields: readonly string[] = []): boolean {
  let value: unknown;
  let isNamed = false;
  try {
    value = JSON.parse(json.toString("utf8"), (key, part) => {
      if (typeof part === "string" && fields.includes(key)) isNamed = true;
      return part;
    });
  } catch {
    return false;
  }
  if (isNamed) return true;
  if (typeof value !== "object" || value === null) return false;
  const has = (name: string) => Object.hasOwn(value, name);
  const isText = (name: string) => has(name) && typeof (value as Record<string, unknown>)[name] === "string";
  return ALWAYS.some(isText) || (WITH_EXPIRY.some(isText) && EXPIRY.some(has));
}
