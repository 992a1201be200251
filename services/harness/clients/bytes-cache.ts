/** Keeps the contents that were used last, up to a number of bytes. */
export class BytesCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): Uint8Array | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    // The order of a Map is that of its insertions.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  put(key: string, entry: Uint8Array): void {
    if (entry.length > this.#maxBytes / 2 || this.#entries.has(key)) return;
    this.#entries.set(key, entry);
    this.#bytes += entry.length;
    for (const [oldest, { length }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#entries.delete(oldest);
      this.#bytes -= length;
    }
  }
}
