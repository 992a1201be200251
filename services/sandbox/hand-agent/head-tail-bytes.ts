import { TailWindow } from "./tail-window.ts";

/** HeadTailBytes keeps the first and the last bytes of a stream of any length, without a marker in between. */
export class HeadTailBytes {
  readonly #headLimit: number;
  readonly #tail: TailWindow<Buffer>;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #total = 0;

  constructor(limit: number) {
    this.#headLimit = Math.floor(limit / 2);
    this.#tail = new TailWindow<Buffer>(limit - this.#headLimit, (pieces) => Buffer.concat(pieces));
  }

  /** Bytes pushed altogether. */
  get total(): number {
    return this.#total;
  }

  get isTruncated(): boolean {
    return this.#tail.dropped > 0;
  }

  /** push adds bytes at the end. */
  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const part = chunk.subarray(0, this.#headLimit - this.#headLength);
    if (this.#headLength < this.#headLimit) {
      this.#head.push(part);
      this.#headLength += part.length;
      this.#tail.push(chunk.subarray(part.length));
    } else this.#tail.push(chunk);
  }

  /** toBuffer returns what was kept. */
  toBuffer(): Buffer {
    return Buffer.concat([...this.#head, this.#tail.value()]);
  }
}
