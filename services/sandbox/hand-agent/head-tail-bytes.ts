/** HeadTailBytes keeps the first and the last bytes of a stream of any length, without a marker in between. */
export class HeadTailBytes {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  #total = 0;

  constructor(limit: number) {
    this.#headLimit = Math.floor(limit / 2);
    this.#tailLimit = limit - this.#headLimit;
  }

  /** Bytes pushed altogether. */
  get total(): number {
    return this.#total;
  }

  get isTruncated(): boolean {
    return this.#total > this.#headLimit + this.#tailLimit;
  }

  /** push adds bytes at the end. */
  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = this.#headLimit - this.#headLength;
    if (room > 0) {
      const part = chunk.subarray(0, room);
      this.#head.push(part);
      this.#headLength += part.length;
      chunk = chunk.subarray(room);
    }
    if (chunk.length === 0) return;
    this.#tail.push(chunk);
    this.#tailLength += chunk.length;
    if (this.#tailLength > 2 * this.#tailLimit + 65536) this.#cutTail();
  }

  /** toBuffer returns what was kept. */
  toBuffer(): Buffer {
    this.#cutTail();
    return Buffer.concat([...this.#head, ...this.#tail]);
  }

  #cutTail(): void {
    if (this.#tailLength <= this.#tailLimit) return;
    // A copy, so that the large chunks behind the view can be freed.
    const all = Buffer.concat(this.#tail, this.#tailLength);
    this.#tail = [Buffer.from(all.subarray(all.length - this.#tailLimit))];
    this.#tailLength = this.#tailLimit;
  }
}
