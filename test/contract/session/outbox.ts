import { EventEmitter, once } from "node:events";
import type { PublishPreviewsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";

/** A stream of requests that a test feeds. */
export class Outbox {
  readonly #events = new EventEmitter();
  readonly #queue: PublishPreviewsRequest[] = [];
  #isOver = false;

  send(request: PublishPreviewsRequest): void {
    this.#queue.push(request);
    this.#events.emit("more");
  }

  end(): void {
    this.#isOver = true;
    this.#events.emit("more");
  }

  async *stream(): AsyncGenerator<PublishPreviewsRequest> {
    for (;;) {
      const request = this.#queue.shift();
      if (request) yield request;
      else if (this.#isOver) return;
      else await once(this.#events, "more");
    }
  }
}
