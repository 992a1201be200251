import type { Preview, PublishPreviewsRequest } from "../../gen/ganglion/session/v1/session_service.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { Previews } from "../ports/leases.ts";
import type { SessionClient } from "./service-clients.ts";

/** More than a reader who keeps up ever lets gather; beyond it text is joined no more but dropped. */
const MAX_WAITING_CHARS = 1_000_000;

/**
 * Previews over one stream per lease, opened with the first of them. Nothing waits for it: text that the stream has no
 * room for yet is joined to what waits already, of a tool's progress the newest counts, and when the stream breaks the rest is shed (previews are never the
 * truth).
 */
export function createGrpcPreviews(client: SessionClient, { sessionId, epoch }: HeldLease): Previews {
  const waiting: Preview[] = [];
  let waitingChars = 0;
  let wake: (() => void) | undefined;
  let isClosed = false;
  let isOpen = false;

  async function* requests(): AsyncGenerator<PublishPreviewsRequest> {
    for (;;) {
      const preview = waiting.shift();
      if (preview) {
        if (preview.message?.$case === "text") waitingChars -= preview.message.value.text.length;
        yield { sessionId, epoch, preview };
      } else if (isClosed) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  }

  function open(): void {
    isOpen = true;
    client.publishPreviews(requests(), { timeoutMs: Number.POSITIVE_INFINITY }).then(
      () => reset(),
      () => reset(),
    );
  }

  function reset(): void {
    isOpen = false;
    waiting.length = 0;
    waitingChars = 0;
  }

  function push(preview: Preview): void {
    if (isClosed) return;
    // A broken stream is opened again with what stands alone, not in the middle of a block.
    const kind = preview.message?.$case;
    if (!isOpen && kind !== "start" && kind !== "toolProgress") return;
    if (!isOpen) open();
    waiting.push(preview);
    wake?.();
  }

  return {
    start: (eventId, eventType) => push({ eventId, message: { $case: "start", value: { eventType } } }),
    text(eventId, text) {
      if (waitingChars + text.length > MAX_WAITING_CHARS) return;
      const last = waiting.at(-1);
      if (last?.eventId === eventId && last.message?.$case === "text") {
        last.message.value.text += text;
        waitingChars += text.length;
        return;
      }
      if (!isOpen) return;
      waitingChars += text.length;
      push({ eventId, message: { $case: "text", value: { text } } });
    },
    discard: (eventId) => push({ eventId, message: { $case: "discarded", value: {} } }),
    progress(eventId, progress) {
      const message = { $case: "toolProgress" as const, value: progress };
      // The newest counts: of each call one waits at most.
      const waits = waiting.find((one) => one.eventId === eventId && one.message?.$case === "toolProgress");
      if (waits) waits.message = message;
      else push({ eventId, message });
    },
    close() {
      isClosed = true;
      wake?.();
    },
  };
}
