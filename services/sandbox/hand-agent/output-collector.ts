import { HeadTailBytes } from "./head-tail-bytes.ts";
import { HeadTailText } from "./head-tail-text.ts";
import { TextCleaner } from "./text-cleaner.ts";

/** What a command wrote. `raw` lacks its middle when it was longer than the limit. */
export type CollectedOutput = { text: string; raw: Buffer; outputBytes: number; isTruncated: boolean };

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
  finish(): CollectedOutput {
    this.#cleaner.end();
    return {
      text: this.#text.toString(),
      raw: this.#raw.toBuffer(),
      outputBytes: this.#raw.total,
      isTruncated: this.#raw.isTruncated || this.#text.isTruncated,
    };
  }
}
