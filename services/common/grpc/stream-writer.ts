import { GanglionError } from "../errors/ganglion-error.ts";
import type { ActiveCall } from "./active-call.ts";
import type { TransportCall } from "./transport-types.ts";

// What may wait for a reader beyond the transport's own window.
const HIGH_WATER_BYTES = 256 * 1024;

/**
 * Writes to a stream no faster than its reader reads: grpc-js queues whatever it is given [M04]
 * and does not say that the reader has gone [M05].
 */
export class StreamWriter {
  readonly #call: TransportCall;
  readonly #active: ActiveCall;
  readonly #slowConsumerMs: number;
  #pendingBytes = 0;
  #lastProgressAt = 0;
  #wake: (() => void) | undefined;
  #failure: Error | undefined;

  constructor(call: TransportCall, active: ActiveCall, slowConsumerMs: number) {
    this.#call = call;
    this.#active = active;
    this.#slowConsumerMs = slowConsumerMs;
  }

  /** Queues a message; it is delivered before the stream's status, whatever that will be. */
  enqueue(bytes: Buffer): void {
    if (this.#active.signal.aborted) throw this.#active.signal.reason;
    if (this.#failure) throw this.#failure;
    this.#pendingBytes += bytes.length;
    this.#lastProgressAt = performance.now();
    this.#call.write(bytes, (error) => {
      this.#pendingBytes -= bytes.length;
      this.#lastProgressAt = performance.now();
      if (error) this.#failure = error;
      this.#wake?.();
    });
  }

  /** Waits until there is room for the next message. */
  async room(): Promise<void> {
    while (this.#pendingBytes > HIGH_WATER_BYTES) await this.#waitForRoom();
  }

  /** Waits until everything was taken over by the transport. */
  async flush(): Promise<void> {
    while (this.#pendingBytes > 0) await this.#waitForRoom();
  }

  async #waitForRoom(): Promise<void> {
    const room = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    let timer: NodeJS.Timeout | undefined;
    const tooSlow = new Promise<never>((_resolve, reject) => {
      const left = this.#lastProgressAt + this.#slowConsumerMs - performance.now();
      timer = setTimeout(() => reject(consumerTooSlow()), Math.max(0, left));
    });
    try {
      await this.#active.race(Promise.race([room, tooSlow]));
    } finally {
      clearTimeout(timer);
      this.#wake = undefined;
    }
    if (this.#failure) throw this.#failure;
  }
}

function consumerTooSlow(): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "CONSUMER_TOO_SLOW",
    message: "the reader took nothing for too long; resume after the last message received",
    retryAfterMs: 1000,
  });
}
