import type { ContentBlock, PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import { isKept } from "./kept-turns.ts";
import { LIMITS } from "./limits.ts";
import type { Resolve } from "./project-messages.ts";
import type { SessionState, Turn } from "./session-state.ts";
import { textBlock } from "./text-block.ts";

/** Blocks whose documents are stored beside the log, by payloadKey(). */
export type Contents = ReadonlyMap<string, ContentBlock>;

/** Names a content by what it is. */
export function payloadKey({ sha256 }: PayloadRef): string {
  return Buffer.from(sha256).toString("hex");
}

/** The contents that a request of this state shows, each once. What is never shown need not be read. */
export function neededPayloads(turns: readonly Turn[], state: SessionState): PayloadRef[] {
  const needed = new Map<string, PayloadRef>();
  for (const turn of [...turns, ...state.queued]) {
    // Nothing of those is stored beside the log.
    if (isKept(turn)) continue;
    const blocks =
      turn.kind === "user"
        ? turn.content
        : [...turn.blocks, ...turn.calls.flatMap((call) => call.result?.content ?? [])];
    for (const block of blocks) {
      const ref = block.data?.$case === "payload" ? block.data.value : undefined;
      if (ref && !noteFor(block, ref)) needed.set(payloadKey(ref), ref);
    }
  }
  return [...needed.values()];
}

/** Puts contents in place of their references. A content that should be there and is not is an error, never a guess. */
export function resolveIn(contents: Contents): Resolve {
  return (block) => {
    if (block.data?.$case !== "payload") return block;
    const ref = block.data.value;
    const note = noteFor(block, ref);
    if (note) return note;
    const content = contents.get(payloadKey(ref));
    if (!content) throw new Error(`the content of a ${block.type} block was not read`);
    return content;
  };
}

/** A note for what would be left out anyway, measured as it would be sent (B035, B036). */
function noteFor(block: ContentBlock, ref: PayloadRef): ContentBlock | undefined {
  const isMedia = block.type === "image" || block.type === "document";
  if (!isMedia || ref.sizeBytes <= BigInt(LIMITS.mediaBytes)) return undefined;
  return textBlock(
    `[${block.type} left out: ${ref.sizeBytes} bytes encoded, the limit is ${LIMITS.mediaBytes}.]`,
  );
}
