import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Preview, WatchEventsResponse } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { keepNewest } from "./keep-newest.ts";

const MAX_MESSAGES = 1_000;
const MAX_BYTES = 4 << 20;
const PREVIEW_BYTES = 512;
// With the longest message that one may have.
const PROGRESS_BYTES = 2048;
const REMEMBERED_IDS = 64;

/** What a watcher wants to see. */
export interface WatchOptions {
  readonly types: ReadonlySet<string> | null;
  readonly includePreviews: boolean;
}

/**
 * One reader of a session that has caught up with its log. It owns one number, the position up to which everything
 * was handed on; so nothing is lost or told twice however often it comes back. A reader that is too slow for its
 * bounded buffer is ended. [B038, B043, B045]
 */
export class Watcher {
  readonly #options: WatchOptions;
  #queue: { message: WatchEventsResponse; bytes: number }[] = [];
  #bytes = 0;
  #position: bigint;
  #failure: GanglionError | undefined;
  #isOver = false;
  #wake: (() => void) | undefined;
  // Previews whose start this reader was given.
  readonly #open = new Set<string>();
  // Events that were just handed on: no preview of theirs comes after them.
  readonly #stored = new Set<string>();

  constructor(options: WatchOptions, position: bigint) {
    this.#options = options;
    this.#position = position;
  }

  /** True when this reader asked for text as it is generated. */
  get hasPreviews(): boolean {
    return this.#options.includePreviews;
  }

  /** Everything up to here was looked at; what matched was handed on or is in the buffer. */
  get position(): bigint {
    return this.#position;
  }

  /** The types that this reader asked for; null = all. */
  get types(): readonly string[] | null {
    return this.#options.types && [...this.#options.types];
  }

  /** True for an event that this reader asked for. */
  wants(type: string): boolean {
    return this.#options.types?.has(type) ?? true;
  }

  /** Sets the position while the reader still reads by itself. */
  moveTo(position: bigint): void {
    this.#position = position;
  }

  /** Takes a stored event; events before the position were seen and are skipped. */
  event(event: Event, bytes: number): void {
    if (event.position <= this.#position) return;
    this.#position = event.position;
    this.#open.delete(event.id);
    if (this.hasPreviews) {
      this.#stored.add(event.id);
      keepNewest(this.#stored, REMEMBERED_IDS);
    }
    if (this.wants(event.type)) {
      this.#push({ position: event.position, message: { $case: "event", value: event } }, bytes);
    }
  }

  /** Takes a preview, or sheds it: text without its start would be a riddle. */
  preview(preview: Preview): void {
    if (!this.#options.includePreviews) return;
    const kind = preview.message?.$case;
    if (kind === "toolProgress") {
      this.#progress(preview);
      return;
    }
    const isCrowded = this.#isCrowded;
    if (kind === "start") {
      if (isCrowded || this.#open.has(preview.eventId) || this.#stored.has(preview.eventId)) return;
      this.#open.add(preview.eventId);
      // Who subscribed for another replica is told of no stored event: nothing else ends a block here.
      keepNewest(this.#open, REMEMBERED_IDS);
    } else if (!this.#open.has(preview.eventId)) {
      return;
    } else if (kind === "discarded") {
      this.#open.delete(preview.eventId);
    } else if (isCrowded) {
      // What follows would have a hole; the stored event is the truth.
      this.#open.delete(preview.eventId);
      return;
    }
    const text = preview.message?.$case === "text" ? preview.message.value.text.length * 3 : 0;
    this.#push(
      { position: this.#position, message: { $case: "preview", value: preview } },
      PREVIEW_BYTES + text,
    );
  }

  // It has no start and leaves no hole: of one call the newest counts, so a reader who is behind has one waiting.
  #progress(preview: Preview): void {
    for (let at = this.#queue.length - 1; at >= 0; at--) {
      const { message } = this.#queue[at]?.message ?? {};
      const waiting = message?.$case === "preview" ? message.value : undefined;
      if (waiting?.message?.$case !== "toolProgress") break;
      if (waiting.eventId !== preview.eventId) continue;
      waiting.message = preview.message;
      return;
    }
    if (this.#isCrowded) return;
    // A copy: what waits here may be overtaken, for this reader alone.
    const value = { ...preview };
    this.#push({ position: this.#position, message: { $case: "preview", value } }, PROGRESS_BYTES);
  }

  get #isCrowded(): boolean {
    return this.#queue.length > MAX_MESSAGES / 2 || this.#bytes > MAX_BYTES / 2;
  }

  /** True for a block whose start this reader was given. */
  isPreviewing(eventId: string): boolean {
    return this.#open.has(eventId);
  }

  /** The session was removed: whatever types were asked for, its watchers hear of it. */
  deleted(event: Event): void {
    this.#push({ position: this.#position, message: { $case: "event", value: event } }, PREVIEW_BYTES);
  }

  /** No more will come; the buffer is still read to its end. */
  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /** Ends the reader with an error. */
  fail(error: GanglionError): void {
    this.#failure = error;
    this.#queue = [];
    this.#bytes = 0;
    this.#wake?.();
  }

  /** The next message; "quiet" when none came in time, undefined when there will be none. */
  async next(waitMs: number, signal: AbortSignal): Promise<WatchEventsResponse | "quiet" | undefined> {
    if (this.#queue.length === 0 && !this.#isOver && !this.#failure) await this.#wait(waitMs, signal);
    if (this.#failure) throw this.#failure;
    const next = this.#queue.shift();
    if (!next) return this.#isOver || signal.aborted ? undefined : "quiet";
    this.#bytes -= next.bytes;
    return next.message;
  }

  #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    const stop = () => resolve();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) resolve();
    this.#wake = resolve;
    return promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      this.#wake = undefined;
    });
  }

  #push(message: WatchEventsResponse, bytes: number): void {
    if (this.#failure || this.#isOver) return;
    if (this.#queue.length >= MAX_MESSAGES || this.#bytes + bytes > MAX_BYTES + (2 << 20)) {
      this.fail(consumerTooSlow());
      return;
    }
    this.#queue.push({ message, bytes });
    this.#bytes += bytes;
    this.#wake?.();
  }
}

function consumerTooSlow(): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "CONSUMER_TOO_SLOW",
    message: "the reader took messages more slowly than they came; resume from the last position",
    retryAfterMs: 1000,
  });
}
