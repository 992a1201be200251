import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** Streams of one caller, and of all: each one is a watch or an upload, and one key must not use up what serves them. */
const MAX_STREAMS_PER_CALLER = 500;
const MAX_STREAMS = 1_000;

/** StreamLimits counts the streams that outside callers have open here, on both doors together. */
export class StreamLimits {
  readonly #byCaller = new Map<string, number>();
  #total = 0;

  /** Counts a stream, or refuses it. */
  opened(caller: string): void {
    const own = this.#byCaller.get(caller) ?? 0;
    if (this.#total >= MAX_STREAMS || own >= MAX_STREAMS_PER_CALLER) throw tooManyStreams();
    this.#total += 1;
    this.#byCaller.set(caller, own + 1);
  }

  /** Counts a stream that is gone. */
  closed(caller: string): void {
    this.#total -= 1;
    const left = (this.#byCaller.get(caller) ?? 0) - 1;
    if (left > 0) this.#byCaller.set(caller, left);
    else this.#byCaller.delete(caller);
  }
}

function tooManyStreams(): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_MANY_STREAMS",
    message: `too many streams are open; one key may have ${MAX_STREAMS_PER_CALLER}`,
    metadata: { limit: String(MAX_STREAMS_PER_CALLER) },
    retryAfterMs: 5_000,
  });
}
