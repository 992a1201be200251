/** Where OAuth's token answers have their tokens. */
export const OAUTH_FIELDS = ["access_token", "refresh_token", "id_token"];
const WITH_EXPIRY = ["token", "secret"];
const EXPIRY = ["expires_at", "expires_in", "expiration"];
// Skips a byte order mark, as clients do.
const UTF8 = new TextDecoder();

/**
 * True for a JSON document that is a new credential (case A066): an OAuth token answer, a token with an expiry, or one that
 * has a text in one of `fields`, at any depth. Of what cannot be read the names of fields are enough. What is inside it would
 * be a credential in the hand.
 */
export function isMintedToken(json: Buffer, fields: readonly string[] = []): boolean {
  const text = UTF8.decode(json);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A guard before it, a second document behind it: who gets it may know how to read it.
    return [...OAUTH_FIELDS, ...fields].some((name) => text.includes(`"${name}"`));
  }
  if (!isObject(value)) return false;
  const top = new Map(Object.entries(value));
  const isText = (name: string) => typeof top.get(name) === "string";
  if (OAUTH_FIELDS.some(isText) || (WITH_EXPIRY.some(isText) && EXPIRY.some((name) => top.has(name))))
    return true;
  const names = new Set(fields);
  // Level by level, so that no nesting can exhaust the stack: what was not looked into would be passed on.
  for (let level: object[] = [value]; level.length > 0; ) {
    const members = level.flatMap((one) => Object.entries(one));
    if (members.some(([name, member]) => typeof member === "string" && names.has(name))) return true;
    level = members.map(([, member]) => member).filter(isObject);
  }
  return false;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
