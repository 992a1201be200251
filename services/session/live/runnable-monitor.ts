import type { LeaseStore } from "../ports/lease-store.ts";

const CAP = 1_000;
// One harness that is asked at once leases within this time; only what is left then is everybody's business.
const LOOK_AFTER_HINT_MS = 15;
// The holder of a session hears of input by itself; whether it is dead can wait a moment.
const LOOK_AT_HELD_MS = 100;

/** One harness that waits for work. */
interface Subscriber {
  notify(count: number): void;
}

/**
 * Tells harnesses that there may be something to lease: one of them at once when this or another process says so, all
 * of them when it is still there a moment later, and by a look of its own at sessions whose holder has stopped beating,
 * which nobody announces.
 */
export class RunnableMonitor {
  readonly #leases: Pick<LeaseStore, "countRunnable">;
  readonly #lookMs: number;
  readonly #subscribers = new Set<Subscriber>();
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #soonAt = Number.POSITIVE_INFINITY;
  #told = 0;

  constructor(leases: Pick<LeaseStore, "countRunnable">, heartbeatTtlMs: number) {
    this.#leases = leases;
    this.#lookMs = Math.max(50, Math.min(500, heartbeatTtlMs / 3));
  }

  /**
   * A session may have become runnable. When nobody holds it, the harness whose turn it is hears of it without a look at
   * the database: if all were told, all but one would ask for nothing.
   */
  hint(isHeld = false): void {
    if (this.#subscribers.size === 0) return;
    // No more than one each until the next look, which says how many there are.
    if (!isHeld && this.#told < this.#subscribers.size) this.#tellNext();
    this.#lookSoon(isHeld ? LOOK_AT_HELD_MS : LOOK_AFTER_HINT_MS);
  }

  /** Stops looking. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#soon);
  }

  /** Counts that arrive: the first at once, then whenever there is something, and 0 when nothing came for long. */
  async *watch(signal: AbortSignal, quietMs: number): AsyncGenerator<number> {
    let latest: number | undefined;
    let wake: (() => void) | undefined;
    const subscriber: Subscriber = {
      notify: (count) => {
        latest = Math.max(latest ?? 0, count);
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

  // Whoever was told goes to the end of the queue.
  #tellNext(): void {
    const [next] = this.#subscribers;
    if (!next) return;
    this.#told += 1;
    this.#subscribers.delete(next);
    this.#subscribers.add(next);
    next.notify(1);
  }

  #lookSoon(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#soonAt) return;
    clearTimeout(this.#soon);
    this.#soonAt = at;
    this.#soon = setTimeout(() => {
      this.#soonAt = Number.POSITIVE_INFINITY;
      this.#told = 0;
      void this.#look();
    }, ms);
    this.#soon.unref();
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
