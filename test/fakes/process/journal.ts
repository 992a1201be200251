import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { bearerOf, createSecretCheck, type SecretCheck } from "./secret-check.ts";

const MAX_ENTRIES = 2000;
const MAX_WAIT_MS = 60_000;

/** One line of a journal: `n` counts from 1 and never repeats. */
export interface JournalEntry {
  readonly n: number;
  readonly at: string;
  /** The same in milliseconds, with fractions. */
  readonly at_ms: number;
  readonly kind: string;
  readonly [field: string]: unknown;
}

/**
 * Journal keeps what a fake has seen, for tests. `serve` answers `GET /journal?after=N&wait_ms=M`: the entries after N,
 * at once when there are any and otherwise as soon as one is written, so that a test waits on an event and never sleeps.
 * `totals` are figures beside them that count also what the journal has dropped by now.
 */
export class Journal {
  readonly #entries: JournalEntry[] = [];
  readonly #written = new EventEmitter().setMaxListeners(0);
  readonly #mayRead: SecretCheck;
  #last = 0;

  /** Without a token nobody may read. */
  constructor(token: string | undefined) {
    this.#mayRead = createSecretCheck(token);
  }

  write(kind: string, fields: Record<string, unknown>): void {
    this.#last += 1;
    const atMs = performance.timeOrigin + performance.now();
    const at = new Date(atMs).toISOString();
    this.#entries.push({ n: this.#last, at, at_ms: atMs, kind, ...fields });
    if (this.#entries.length > MAX_ENTRIES) this.#entries.shift();
    this.#written.emit("entry");
  }

  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    totals: object = {},
  ): Promise<void> {
    if (!this.#mayRead(bearerOf(request.headers))) {
      response
        .writeHead(401, { "content-type": "application/json" })
        .end('{"error":"journal token required"}');
      return;
    }
    const after = Number(url.searchParams.get("after") ?? 0);
    const waitMs = Math.min(Number(url.searchParams.get("wait_ms") ?? 0), MAX_WAIT_MS);
    if (this.#last <= after && waitMs > 0) {
      const signal = AbortSignal.timeout(waitMs);
      await once(this.#written, "entry", { signal }).catch(() => {});
    }
    const entries = this.#entries.filter((entry) => entry.n > after);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ entries, last: this.#last, ...totals }));
  }
}
