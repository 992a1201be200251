/** Least length of a token that a token endpoint may give out: a shorter one is none. */
export const MIN_SECRET_BYTES = 8;
/** Least length of a secret that somebody stores: a shorter one could not be told from any text in an answer. */
export const MIN_STORED_BYTES = 4;
/** Greatest length of a secret. */
export const MAX_SECRET_BYTES = 65_536;

/**
 * True for a text that can stand in a header as it is: printable ASCII, no space at either end. Checked before a header
 * is made of it, never found out by the error of an HTTP library, which quotes it (case A027).
 */
export function isSendable(text: string): boolean {
  if (text.length === 0 || text.length > MAX_SECRET_BYTES) return false;
  return /^[\x20-\x7e]+$/.test(text) && text.trim() === text;
}
