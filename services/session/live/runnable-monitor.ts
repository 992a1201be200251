import type { LeaseStore } from "../ports/lease-store.ts";

const CAP = 1_000;
const COALESCE_MS = 5;

/** One harness that waits for work. */
interface Subscriber {
  notify(count: number): void;
}

/**
 * Tells harnesses that there may be something to lease: at once when this or another process says so, and by a look
 * of its own at sessions whose holder has stopped beating, which nobody announces.
 */
export class RunnableMonitor {
  readonly #leases: Pick<LeaseStore, "countRunnable">;
  readonly #lookMs: number;
  readonly #subscribers = new Set<Subscriber>();
  #timer: NodeJS.Timeout | undefined;
  #coalescing: NodeJS.Timeout | undefined;
  #isHinted = false;

  constructor(leases: Pick<LeaseStore, "countRunnable">, heartbeatTtlMs: number) {
    this.#leases = leases;
    this.#lookMs = Math.max(50, Math.min(500, heartbeatTtlMs / 3));
  }

  /** A session may have become runnable: looks at once, and once more for all that is said within a moment. */
  hint(): void {
    if (this.#subscribers.size === 0) return;
    this.#isHinted = true;
    if (this.#coalescing) return;
    this.#isHinted = false;
    void this.#look();
    this.#coalescing = setTimeout(() => {
      this.#coalescing = undefined;
      if (this.#isHinted) this.hint();
    }, COALESCE_MS);
  }

  /** Stops looking. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#coalescing);
  }

  /** Counts that arrive: the first at once, then whenever there is something, and 0 when nothing came for long. */
  async *watch(signal: AbortSignal, quietMs: number): AsyncGenerator<number> {
    let latest: number | undefined;
    let wake: (() => void) | undefined;
    const subscriber: Subscriber = {
      notify: (count) => {
        latest = count;
        wake?.();
      },
    };
    this.#subscribers.add(subscriber);
    this.#schedule();
    try {
      yield await this.#leases.countRunnable(CAP, signal);
      while (!signal.aborted) {
        if (latest === undefined) {
          const { promise, resolve } = Promise.withResolvers<void>();
          wake = resolve;
          const timer = setTimeout(resolve, quietMs);
          const stop = () => resolve();
          signal.addEventListener("abort", stop, { once: true });
          await promise;
          clearTimeout(timer);
          signal.removeEventListener("abort", stop);
        }
        const count = latest ?? 0;
        latest = undefined;
        yield count;
      }
    } finally {
      this.#subscribers.delete(subscriber);
    }
  }

  // Jittered, so that replicas and harnesses do not all come at once.
  #schedule(): void {
    if (this.#timer || this.#subscribers.size === 0) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        void this.#look().finally(() => this.#schedule());
      },
      this.#lookMs * (0.75 + Math.random() / 2),
    );
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    try {
      const count = await this.#leases.countRunnable(CAP);
      if (count > 0) for (const subscriber of this.#subscribers) subscriber.notify(count);
    } catch {
      // The database is away; look again later.
    }
  }
}
