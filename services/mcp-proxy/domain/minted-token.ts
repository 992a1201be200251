const ALWAYS = ["access_token", "refresh_token", "id_token"];
const WITH_EXPIRY = ["token", "secret"];
const EXPIRY = ["expires_at", "expires_in", "expiration"];
// Skips a byte order mark, as clients do.
const UTF8 = new TextDecoder();

/**
 * True for a JSON document that is a new credential (case A066): a token with an expiry, or one that has, at any depth, a text
 * where OAuth's token answers have theirs or in one of `fields`. Of what cannot be read the names of these are enough. What is
 * inside it would be a credential in the hand.
 */
export function isMintedToken(json: Buffer, fields: readonly string[] = []): boolean {
  const names = new Set([...ALWAYS, ...fields]);
  const text = UTF8.decode(json);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A guard before it, a second document behind it: who gets it may know how to read it.
    return [...names].some((name) => text.includes(`"${name}"`));
  }
  if (!isObject(value)) return false;
  const top = new Map(Object.entries(value));
  if (WITH_EXPIRY.some((name) => typeof top.get(name) === "string") && EXPIRY.some((name) => top.has(name)))
    return true;
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
