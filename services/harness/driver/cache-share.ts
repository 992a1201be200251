import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";

/** Where input tokens came from, for the process's metrics. */
export type CountInput = (source: "cache_read" | "cache_write" | "uncached", tokens: number) => void;

/**
 * How much of what a session's requests held came out of the provider's cache: read / (read + written + neither), over
 * the requests of one run. The share of a whole harness follows from its counter.
 */
export class CacheShare {
  readonly #count: CountInput;
  #read = 0;
  #total = 0;

  constructor(count: CountInput) {
    this.#count = count;
  }

  /** Takes one answer's usage; one without usage counts as nothing. */
  note(usage: ModelUsage | undefined): void {
    if (!usage) return;
    const read = Number(usage.cacheReadInputTokens);
    const written = Number(usage.cacheCreationInputTokens);
    const plain = Number(usage.inputTokens);
    this.#read += read;
    this.#total += read + written + plain;
    this.#count("cache_read", read);
    this.#count("cache_write", written);
    this.#count("uncached", plain);
  }

  /** 0 to 1; undefined when nothing was counted. */
  get value(): number | undefined {
    return this.#total === 0 ? undefined : this.#read / this.#total;
  }
}
