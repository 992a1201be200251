/** What a TailWindow holds: strings or buffers. */
type Piece<T> = { length: number; slice(start: number): T };

/** TailWindow keeps the last pieces of a stream: at least `limit` units of it, and not much more. */
export class TailWindow<T extends Piece<T>> {
  readonly #limit: number;
  readonly #join: (pieces: T[]) => T;
  #pieces: T[] = [];
  #first = 0;
  #length = 0;
  #dropped = 0;

  constructor(limit: number, join: (pieces: T[]) => T) {
    this.#limit = limit;
    this.#join = join;
  }

  /** Units that no longer are in the tail. */
  get dropped(): number {
    return this.#dropped + Math.max(0, this.#length - this.#limit);
  }

  /** push adds a piece at the end and lets go of those that are too old. */
  push(piece: T): void {
    if (piece.length === 0) return;
    const last = this.#pieces.length - 1;
    // Many tiny writes become few pieces.
    if (last >= this.#first && this.#pieces[last]!.length < SMALL) {
      this.#pieces[last] = this.#join([this.#pieces[last]!, piece]);
    } else this.#pieces.push(piece);
    this.#length += piece.length;
    while (this.#length - this.#pieces[this.#first]!.length >= this.#limit) {
      const gone = this.#pieces[this.#first]!.length;
      this.#first += 1;
      this.#length -= gone;
      this.#dropped += gone;
    }
    if (this.#first > 1024) {
      this.#pieces = this.#pieces.slice(this.#first);
      this.#first = 0;
    }
  }

  /** value returns the tail: the last `limit` units, or all there were. */
  value(): T {
    const all = this.#join(this.#pieces.slice(this.#first));
    return all.length > this.#limit ? all.slice(all.length - this.#limit) : all;
  }
}

const SMALL = 4_096;
