import { randomBytes } from "node:crypto";

const NONCE = randomBytes(12).toString("hex");
const MARK = new RegExp(`"@raw:${NONCE}:(\\d+)"`, "g");

/**
 * RawJson is a JSON text that is written as it is: what a model generated keeps its key order, numbers and escapes,
 * also where JavaScript's own numbers would change them. [M25]
 */
export class RawJson {
  readonly text: string;

  constructor(bytes: Uint8Array) {
    this.text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  }
}

/** writeJson is JSON.stringify for values that may hold RawJson. */
export function writeJson(value: unknown): string {
  const raw: string[] = [];
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (part instanceof RawJson) return `@raw:${NONCE}:${raw.push(part.text) - 1}`;
    return typeof part === "bigint" ? Number(part) : part;
  });
  // Nobody outside can know the nonce, so no text of theirs is taken for a mark.
  return raw.length === 0 ? text : text.replace(MARK, (_mark, index) => raw[Number(index)] as string);
}
