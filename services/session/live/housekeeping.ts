import type { Logger } from "../../common/log/create-logger.ts";
import type { PayloadStore } from "../ports/payload-store.ts";

const PERIOD_MS = 10 * 60_000;

/** Now and then removes what nobody will miss: content older than a day that no event names. */
export class Housekeeping {
  readonly #payloads: Pick<PayloadStore, "removeOld">;
  readonly #log: Logger;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(payloads: Pick<PayloadStore, "removeOld">, log: Logger) {
    this.#payloads = payloads;
    this.#log = log;
    this.#schedule();
  }

  /** Removes what is due; a little at a time, so that nobody waits for it. */
  async clean(): Promise<void> {
    try {
      while (!this.#isClosed && (await this.#payloads.removeOld()) > 0);
    } catch (error) {
      // Most likely the database is away. If it is something else, the tables grow: somebody should see it.
      this.#log.warn({ err: error }, "old content could not be removed; another time");
    }
  }

  /** Stops. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  // Jittered, so that replicas do not come all at once.
  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(
      () => void this.clean().finally(() => this.#schedule()),
      PERIOD_MS * (0.5 + Math.random()),
    );
    this.#timer.unref();
  }
}
