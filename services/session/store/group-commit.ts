import { databaseUnavailable } from "./pg-error.ts";

/** How calls are grouped. */
export interface GroupOptions<Call, Result> {
  /** Statements that may run at a time. */
  readonly lanes: number;
  readonly maxCalls: number;
  readonly maxBytes: number;
  readonly sizeOf: (call: Call) => number;
  /** Calls with the same key are never in two statements at a time. */
  readonly keyOf: (call: Call) => string;
  /** Runs a group; answers in order. Rejects only when the whole group failed. */
  readonly run: (calls: readonly Call[]) => Promise<readonly PromiseSettledResult<Result>[]>;
}

interface Queued<Call, Result> {
  readonly call: Call;
  readonly size: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets concurrent callers share a statement and its commit. A caller that comes alone does not wait: groups form
 * by themselves while earlier ones are under way.
 */
export class GroupCommit<Call, Result> {
  readonly #options: GroupOptions<Call, Result>;
  readonly #queue = new Set<Queued<Call, Result>>();
  readonly #busyKeys = new Set<string>();
  #running = 0;
  #isScheduled = false;

  constructor(options: GroupOptions<Call, Result>) {
    this.#options = options;
  }

  /** Queues a call; a signal takes it back out as long as its statement has not begun. */
  submit(call: Call, signal?: AbortSignal): Promise<Result> {
    if (signal?.aborted) return Promise.reject(databaseUnavailable("deadline"));
    return new Promise<Result>((resolve, reject) => {
      const withdraw = () => {
        if (this.#queue.delete(queued)) reject(databaseUnavailable("busy"));
      };
      const settle = () => signal?.removeEventListener("abort", withdraw);
      const queued: Queued<Call, Result> = {
        call,
        size: this.#options.sizeOf(call),
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      signal?.addEventListener("abort", withdraw, { once: true });
      this.#queue.add(queued);
      this.#schedule();
    });
  }

  // A call that finds nothing under way goes at once; otherwise those of one turn of the event loop go together.
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (this.#running === 0) queueMicrotask(() => this.#start());
    else setImmediate(() => this.#start());
  }

  #start(): void {
    this.#isScheduled = false;
    while (this.#running < this.#options.lanes) {
      const group = this.#take();
      if (group.length === 0) return;
      void this.#flush(group);
    }
  }

  #take(): Queued<Call, Result>[] {
    const { maxCalls, maxBytes, keyOf } = this.#options;
    const group: Queued<Call, Result>[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    for (const queued of this.#queue) {
      if (group.length >= maxCalls || (group.length > 0 && bytes + queued.size > maxBytes)) break;
      const key = keyOf(queued.call);
      if (this.#busyKeys.has(key)) continue;
      keys.add(key);
      bytes += queued.size;
      group.push(queued);
    }
    for (const queued of group) this.#queue.delete(queued);
    for (const key of keys) this.#busyKeys.add(key);
    return group;
  }

  async #flush(group: readonly Queued<Call, Result>[]): Promise<void> {
    this.#running += 1;
    try {
      const results = await this.#options.run(group.map(({ call }) => call));
      group.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result?.status === "fulfilled") resolve(result.value);
        else reject(result?.reason ?? new Error("a group gave no answer for one of its calls"));
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      this.#running -= 1;
      for (const { call } of group) this.#busyKeys.delete(this.#options.keyOf(call));
      if (this.#queue.size > 0) this.#schedule();
    }
  }
}
