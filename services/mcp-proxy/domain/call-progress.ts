/** How far a call is, in the words of its server. */
export interface McpProgress {
  /** In the server's own unit; finite. */
  progress: number;
  /** What there is to do, in the same unit, finite and above 0; 0 = unknown. */
  total: number;
  /** Bounded, without the credential and without control characters. */
  message: string;
}

/**
 * What the server of one call has reported. Only the newest report is kept, for however many readers and however slow
 * they are: reports are shown to people and nothing depends on them (B092).
 */
export class CallProgress {
  #newest: McpProgress | undefined;
  #reports = 0;
  #isOver = false;
  // Readers who wait for a report, and those who let time pass between two.
  readonly #waiting = new Set<() => void>();
  readonly #pausing = new Set<() => void>();

  /** The server reports. */
  report(progress: McpProgress): void {
    this.#newest = progress;
    this.#reports += 1;
    for (const wake of this.#waiting) wake();
  }

  /** The call is over. */
  end(): void {
    this.#isOver = true;
    for (const wake of [...this.#waiting, ...this.#pausing]) wake();
  }

  /** The newest report, and newer ones as they come, `gapMs` apart; ends with the call, and quietly with the signal. */
  async *watch(gapMs: number, signal: AbortSignal): AsyncGenerator<McpProgress, void, undefined> {
    let seen = 0;
    for (;;) {
      if (seen === this.#reports && !this.#isOver) await wokenFrom(this.#waiting, signal);
      if (this.#isOver || signal.aborted) return;
      if (seen === this.#reports || !this.#newest) continue;
      seen = this.#reports;
      yield this.#newest;
      if (!this.#isOver) await wokenFrom(this.#pausing, signal, gapMs);
    }
  }
}

function wokenFrom(sleepers: Set<() => void>, signal: AbortSignal, forMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      sleepers.delete(wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = forMs === undefined ? undefined : setTimeout(wake, forMs);
    sleepers.add(wake);
    signal.addEventListener("abort", wake);
    if (signal.aborted) wake();
  });
}
