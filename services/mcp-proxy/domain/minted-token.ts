const ALWAYS = ["access_token", "refresh_token", "id_token"];
const WITH_EXPIRY = ["token", "secret"];
const EXPIRY = ["expires_at", "expires_in", "expiration"];
// Skips a byte order mark, as clients do.
const UTF8 = new TextDecoder();

/**
 * True for a JSON document that is a new credential (case A066): a token with an expiry, or one that has, at any depth, a text
 * where OAuth's token answers have theirs or in one of `fields`. What is inside it would be a credential in the hand.
 */
export function isMintedToken(json: Buffer, fields: readonly string[] = []): boolean {
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(json));
  } catch {
    return false;
  }
  if (!isObject(value)) return false;
  const top = new Map(Object.entries(value));
  if (WITH_EXPIRY.some((name) => typeof top.get(name) === "string") && EXPIRY.some((name) => top.has(name)))
    return true;
  const names = new Set([...ALWAYS, ...fields]);
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
