import { setImmediate } from "node:timers/promises";
import type { OpenedRequest } from "../ports/model.ts";

/** Sends a request with that body; resolves with the head of its answer. */
export type Send = (body: ReadableStream<Uint8Array>, signal: AbortSignal) => Promise<Response>;

/** Held for longer, a request is made anew: the door gives up those that never end. */
const HOLD_MS = 5000;

/**
 * A request whose last byte is held back. HTTP says how long a body is, so that the other end has no request before that
 * byte, and none at all when the connection ends without it.
 */
export class HeldRequest implements OpenedRequest {
  readonly #abort = new AbortController();
  readonly #last: Uint8Array;
  readonly #answer: Promise<Response>;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Zero until it was begun. */
  #begunAt = 0;
  #isOver = false;
  #isSent = false;

  /** Begins to send once `ready` says so, if it is wanted still. */
  constructor(body: Uint8Array, ready: Promise<unknown>, send: Send) {
    this.#last = body.subarray(-1);
    // Before its end it cannot have been answered well.
    const over = (): void => {
      this.#isOver = true;
    };
    const held = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
        if (body.length > 1) controller.enqueue(body.subarray(0, -1));
      },
      // Whoever sends it will not send the end of it any more, which may be known before the answer is.
      cancel: over,
    });
    const { signal } = this.#abort;
    const begin = async (): Promise<Response> => {
      await ready;
      // In another turn of the event loop: what the log is asked in this one must not wait for it.
      await setImmediate();
      signal.throwIfAborted();
      this.#begunAt = performance.now();
      return send(held, signal);
    };
    this.#answer = begin();
    this.#answer.then(over, over);
  }

  /**
   * Sends the end. Undefined when nobody was asked and nobody will be: it was not begun or held too long, the other end
   * gave it up, or the signal has fired, which ends the answer too.
   */
  complete(signal: AbortSignal): Promise<Response> | undefined {
    const isHeld = this.#begunAt > 0 && performance.now() - this.#begunAt < HOLD_MS;
    if (!isHeld || this.#isOver || this.#isSent || signal.aborted) {
      this.cancel();
      return undefined;
    }
    this.#isSent = true;
    signal.addEventListener("abort", () => this.#abort.abort(signal.reason), { once: true });
    this.#body?.enqueue(this.#last);
    this.#body?.close();
    return this.#answer;
  }

  cancel(): void {
    if (this.#isSent) return;
    this.#isSent = true;
    const reason = new Error("the request was given up");
    this.#abort.abort(reason);
    // Whoever reads the body waits for its end otherwise.
    this.#body?.error(reason);
  }
}
