import type { ContentBlock, PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import { type Contents, payloadKey } from "../domain/payload-contents.ts";
import type { EventLog } from "../ports/event-log.ts";

// The same bytes give the same block, so that what was found out about it is not found out for every request.
const blocks = new WeakMap<Uint8Array, ContentBlock>();

/** Reads blocks whose documents are stored beside the log. */
export class PayloadReader {
  readonly #log: EventLog;

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** All of them, by payloadKey(); stopped by the signal it gives what it has. */
  async readAll(sessionId: string, refs: readonly PayloadRef[], signal: AbortSignal): Promise<Contents> {
    const contents = new Map<string, ContentBlock>();
    for (const ref of refs) {
      try {
        contents.set(payloadKey(ref), toBlock(await this.#log.readPayload(sessionId, ref, signal)));
      } catch (error) {
        if (signal.aborted) return contents;
        throw error;
      }
    }
    return contents;
  }
}

function toBlock(bytes: Uint8Array): ContentBlock {
  const before = blocks.get(bytes);
  if (before) return before;
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const { type } = JSON.parse(value.toString("utf8")) as { type?: unknown };
  const block: ContentBlock = { type: String(type), data: { $case: "json", value } };
  blocks.set(bytes, block);
  return block;
}
