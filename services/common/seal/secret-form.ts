/** Least length of a secret that somebody stores: a shorter one could not be told from any text in an answer. */
export const MIN_SECRET_BYTES = 4;
/** Greatest length of a secret. */
export const MAX_SECRET_BYTES = 65_536;
/** What a secret must be, for the error about one that is not. */
export const SECRET_MEANS = `must be ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes of printable ASCII without spaces around it`;

/** isStorable is true for a secret that somebody may store: one that could be sent, and long enough to be found again. */
export function isStorable(text: string): boolean {
  return text.length >= MIN_SECRET_BYTES && isSendable(text);
}

/**
 * isSendable is true for a text that can stand in a header as it is: printable ASCII, no space at either end. Checked before
 * a header is made of it, never found out by the error of an HTTP library, which quotes it (case A027).
 */
export function isSendable(text: string): boolean {
  if (text.length === 0 || text.length > MAX_SECRET_BYTES) return false;
  return /^[\x20-\x7e]+$/.test(text) && text.trim() === text;
}
