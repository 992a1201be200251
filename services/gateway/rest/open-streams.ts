import type { StreamLimits } from "../domain/stream-limits.ts";

/** A send is remembered this long for a stream that is opened after it. */
const MEMORY_MS = 30_000;
const MAX_SESSIONS = 10_000;

/**
 * OpenStreams knows the event streams that are open here. Of sessions with none it remembers, for a moment, where a
 * client's send began: a client that sends before it opens its stream would miss a turn that is over by then. [trap 4]
 * It is a courtesy, not state: without it such a client sees the turn in progress and nothing older.
 */
export class OpenStreams {
  readonly #open = new Map<string, number>();
  readonly #limits: StreamLimits;
  readonly #sent = new Map<string, { position: bigint; until: number }>();
  readonly #shutdown = new AbortController();

  /** `limits` counts the streams of the other door as well. */
  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Fires when the gateway is shutting down. */
  get shutdown(): AbortSignal {
    return this.#shutdown.signal;
  }

  /** Remembers where a send began when nobody was listening. */
  noteSent(sessionId: string, position: bigint): void {
    if (this.#open.has(sessionId)) return;
    const known = this.#sent.get(sessionId);
    if (known && known.until > Date.now()) return;
    if (this.#sent.size >= MAX_SESSIONS) this.#sent.clear();
    this.#sent.set(sessionId, { position, until: Date.now() + MEMORY_MS });
  }

  /** Counts a stream, or refuses it; gives the position of a send that it should begin with, once. */
  opened(sessionId: string, caller: string): bigint | undefined {
    this.#limits.opened(caller);
    raise(this.#open, sessionId, 1);
    const sent = this.#sent.get(sessionId);
    this.#sent.delete(sessionId);
    return sent && sent.until > Date.now() ? sent.position : undefined;
  }

  /** Counts a stream that is gone. */
  closed(sessionId: string, caller: string): void {
    this.#limits.closed(caller);
    raise(this.#open, sessionId, -1);
  }

  /** Ends all streams; their clients connect again. */
  endAll(): void {
    this.#shutdown.abort();
  }
}

function raise(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
