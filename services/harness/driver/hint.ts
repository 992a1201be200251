import { pause } from "./pause.ts";

/** A number that wakes one waiter; 0 = none was given. */
export class Hint {
  #count = 0;
  #wake: (() => void) | undefined;

  give(count: number): void {
    this.#count = Math.max(this.#count, count);
    this.#wake?.();
  }

  /** Waits for a hint, or for the time; without a hint there may be any number. */
  async wait(ms: number, signal: AbortSignal): Promise<number> {
    if (this.#count === 0) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await pause(ms, AbortSignal.any([woken.signal, signal]));
      this.#wake = undefined;
    }
    const count = this.#count;
    this.#count = 0;
    return count === 0 ? Number.POSITIVE_INFINITY : count;
  }
}
