import { randomBytes } from "node:crypto";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** randomText makes letters and digits, each of them equally likely. */
export function randomText(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 in a byte; higher ones would favour the first letters.
      if (byte < 248 && text.length < length) text += LETTERS[byte % LETTERS.length];
    }
  }
  return text;
}
