import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";
import { keepNewest } from "../live/keep-newest.ts";
import { Watcher } from "../live/watcher.ts";

/** Blocks of a stream that are kept as under way. */
export const MAX_OPEN = 8;
// What is kept of each, for those who come late.
const MAX_TEXT = 65_536;

interface OpenBlock {
  readonly eventType: string;
  /** The block's text so far; undefined when it grew too long to be kept. */
  text: string | undefined;
}

/**
 * One harness's stream of previews as it arrives at this replica: to the watchers here, and to the replicas that have
 * some. Who subscribes late is given the blocks under way from their beginning.
 */
export class Publication {
  readonly epoch: bigint;
  readonly #deliver: (preview: Preview) => void;
  #subscribers: Set<Watcher>;
  readonly #open = new Map<string, OpenBlock>();

  /** `deliver` hands a preview to the watchers of this replica. */
  constructor(epoch: bigint, deliver: (preview: Preview) => void, subscribers = new Set<Watcher>()) {
    this.epoch = epoch;
    this.#deliver = deliver;
    this.#subscribers = subscribers;
  }

  /** Another stream takes its place: what was under way is void, and its subscribers go on with that one. */
  handOver(): Set<Watcher> {
    this.#voidAll();
    const subscribers = this.#subscribers;
    this.#subscribers = new Set();
    return subscribers;
  }

  /** Passes a preview on. */
  push(preview: Preview): void {
    this.#remember(preview);
    this.#deliver(preview);
    for (const subscriber of this.#subscribers) subscriber.preview(preview);
  }

  /** Ids of the blocks under way. */
  get openIds(): string[] {
    return [...this.#open.keys()];
  }

  /** A subscriber, with the blocks under way but those whose events are stored already. */
  subscribe(storedIds: ReadonlySet<string>): Watcher {
    const subscriber = new Watcher({ types: new Set(), includePreviews: true }, 0n);
    this.tellFromStart(subscriber, storedIds);
    this.#subscribers.add(subscriber);
    return subscriber;
  }

  /** Tells who came late of the blocks under way that he has not heard of. */
  tellFromStart(late: Watcher, storedIds: ReadonlySet<string>): void {
    for (const [eventId, { eventType, text }] of this.#open) {
      if (text === undefined || storedIds.has(eventId) || late.isPreviewing(eventId)) continue;
      late.preview({ eventId, message: { $case: "start", value: { eventType } } });
      if (text !== "") late.preview({ eventId, message: { $case: "text", value: { text } } });
    }
  }

  /** Lets a subscriber go. */
  unsubscribe(subscriber: Watcher): void {
    this.#subscribers.delete(subscriber);
  }

  /** The stream is over: what was under way and is not in the log will not be. */
  end(storedIds: ReadonlySet<string>): void {
    for (const id of storedIds) this.#open.delete(id);
    this.#voidAll();
    for (const subscriber of this.#subscribers) subscriber.end();
    this.#subscribers.clear();
    this.#open.clear();
  }

  #voidAll(): void {
    for (const eventId of this.openIds) this.push({ eventId, message: { $case: "discarded", value: {} } });
  }

  #remember({ eventId, message }: Preview): void {
    if (message?.$case === "start") {
      this.#open.set(eventId, { eventType: message.value.eventType, text: "" });
      keepNewest(this.#open, MAX_OPEN);
    } else if (message?.$case === "discarded") {
      this.#open.delete(eventId);
    } else if (message?.$case === "text") {
      const block = this.#open.get(eventId);
      if (block?.text === undefined) return;
      const text = block.text + message.value.text;
      block.text = text.length > MAX_TEXT ? undefined : text;
    }
  }
}
