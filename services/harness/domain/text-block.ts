import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";

/** A text block of our own making. */
export function textBlock(text: string): ContentBlock {
  return jsonBlock("text", { type: "text", text });
}

/** A block of our own making; `value.type` must be `type`. */
export function jsonBlock(type: string, value: unknown): ContentBlock {
  return { type, data: { $case: "json", value: Buffer.from(JSON.stringify(value)) } };
}

/** The document of a block; undefined when it is stored beside the log. */
export function blockJson(block: ContentBlock): Uint8Array | undefined {
  return block.data?.$case === "json" ? block.data.value : undefined;
}
