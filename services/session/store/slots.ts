import { databaseUnavailable } from "./pg-error.ts";

interface Waiter {
  grant: () => void;
}

/**
 * A bounded number of slots. Whoever waits does so until its own signal ends the wait or the limit is reached,
 * never longer, in order of arrival. [B054]
 */
export class Slots {
  #free: number;
  readonly #waiting = new Set<Waiter>();
  readonly #maxWaitMs: number;

  constructor(count: number, maxWaitMs: number) {
    this.#free = count;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Takes a slot; call what it returns exactly once to give it back. */
  async take(signal?: AbortSignal): Promise<() => void> {
    if (signal?.aborted) throw databaseUnavailable("deadline");
    if (this.#free > 0 && this.#waiting.size === 0) this.#free -= 1;
    else await this.#wait(signal);
    return () => this.#giveBack();
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = {
      grant: () => {
        settle();
        resolve();
      },
    };
    const fail = () => {
      settle();
      reject(databaseUnavailable("busy"));
    };
    const timer = setTimeout(fail, this.#maxWaitMs);
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", fail);
      this.#waiting.delete(waiter);
    };
    signal?.addEventListener("abort", fail, { once: true });
    this.#waiting.add(waiter);
    return promise;
  }

  #giveBack(): void {
    for (const next of this.#waiting) {
      next.grant();
      return;
    }
    this.#free += 1;
  }
}
