import { HeadTailBytes } from "./head-tail-bytes.ts";
import { HeadTailText } from "./head-tail-text.ts";
import { TextCleaner } from "./text-cleaner.ts";

/** OutputCollector keeps a command's output twice: the bytes as written, and the text the model reads. */
export class OutputCollector {
  readonly #raw: HeadTailBytes;
  readonly #text: HeadTailText;
  readonly #cleaner: TextCleaner;

  constructor(limits: { textChars: number; rawBytes: number }) {
    this.#raw = new HeadTailBytes(limits.rawBytes);
    this.#text = new HeadTailText(limits.textChars);
    this.#cleaner = new TextCleaner((text) => this.#text.push(text));
  }

  /** push takes the next bytes of output. */
  push(chunk: Buffer): void {
    this.#raw.push(chunk);
    this.#cleaner.push(chunk);
  }

  /** finish returns both views; nothing may be pushed afterwards. */
  finish(): { text: string; rawBase64: string; outputBytes: number; isTruncated: boolean } {
    this.#cleaner.end();
    return {
      text: this.#text.toString(),
      rawBase64: this.#raw.toBuffer().toString("base64"),
      outputBytes: this.#raw.total,
      isTruncated: this.#raw.isTruncated || this.#text.isTruncated,
    };
  }
}
