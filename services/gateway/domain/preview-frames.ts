import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";

/** A frame of text being generated, as the REST API shows it. */
export type PreviewFrame =
  | { type: "event_start"; event: { type: string; id: string } }
  | {
      type: "event_delta";
      event_id: string;
      delta: { type: "content_delta"; index: 0; content: { type: "text"; text: string } };
    };

/**
 * PreviewFrames turns previews into frames for one connection: only of types it asked for, one start for each id, and
 * no delta without its start, which is what joining in the middle or a lost message would give.
 */
export class PreviewFrames {
  readonly #types: ReadonlySet<string>;
  readonly #started = new Map<string, string>();

  constructor(types: ReadonlySet<string>) {
    this.#types = types;
  }

  /** The frame for a preview; undefined when the connection is not to see it. */
  next(preview: Preview): PreviewFrame | undefined {
    const { eventId: id, message } = preview;
    switch (message?.$case) {
      case "start": {
        const type = message.value.eventType;
        if (!this.#types.has(type) || this.#started.has(id)) return undefined;
        this.#started.set(id, type);
        return { type: "event_start", event: { type, id } };
      }
      case "text": {
        // Thinking is shown as having begun, never as text.
        if (this.#started.get(id) !== "agent.message" || message.value.text === "") return undefined;
        const content = { type: "text" as const, text: message.value.text };
        return { type: "event_delta", event_id: id, delta: { type: "content_delta", index: 0, content } };
      }
      case "discarded":
        this.#started.delete(id);
        return undefined;
      default:
        return undefined;
    }
  }

  /** The event itself is there: nothing more is shown of its preview. */
  stored(eventId: string): void {
    this.#started.delete(eventId);
  }
}
