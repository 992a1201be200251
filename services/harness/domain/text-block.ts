import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";

/** A text block of our own making. */
export function textBlock(text: string): ContentBlock {
  return jsonBlock("text", { type: "text", text });
}

/** A block of our own making; `value.type` must be `type`. */
export function jsonBlock(type: string, value: unknown): ContentBlock {
  return { type, data: { $case: "json", value: Buffer.from(JSON.stringify(value)) } };
}

/** Bytes of a block's document, wherever it is. */
export function blockSize(block: ContentBlock): number {
  return block.data?.$case === "payload"
    ? Number(block.data.value.sizeBytes)
    : (blockJson(block)?.length ?? 0);
}

/** The document of a block; undefined when it is stored beside the log. */
export function blockJson(block: ContentBlock): Uint8Array | undefined {
  return block.data?.$case === "json" ? block.data.value : undefined;
}
