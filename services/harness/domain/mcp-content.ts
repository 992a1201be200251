import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { blockJson, jsonBlock, textBlock } from "./text-block.ts";

const IMAGE_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

type Json = Record<string, unknown>;

/**
 * What an MCP tool answered, in the form that the model's API takes. Structured content is shown even when the blocks
 * beside it are only a summary (B103); kinds that the model cannot take become a note, never an error (B104).
 */
export function mcpContent(
  content: readonly ContentBlock[],
  structuredContentJson: Uint8Array,
): ContentBlock[] {
  const blocks = content.map(toModelBlock);
  const structured = new TextDecoder().decode(structuredContentJson);
  if (structured !== "" && !content.some((block) => saysTheSame(block, structured))) {
    blocks.push(textBlock(structured));
  }
  return blocks;
}

function toModelBlock(block: ContentBlock): ContentBlock {
  const value = parse(block);
  switch (value?.type) {
    case "text":
      return textBlock(text(value.text));
    case "image":
      return imageBlock(text(value.mimeType), text(value.data));
    case "audio":
      return textBlock(`[An audio clip (${text(value.mimeType)}) that cannot be shown.]`);
    case "resource_link":
      return textBlock(`[Resource ${text(value.name)}: ${text(value.uri)}]`);
    case "resource":
      return resourceBlock(value.resource);
    default:
      return textBlock(`[Content of type ${block.type || "unknown"} that cannot be shown.]`);
  }
}

function resourceBlock(value: unknown): ContentBlock {
  const resource = typeof value === "object" && value !== null ? (value as Json) : {};
  if (typeof resource.text === "string") return textBlock(resource.text);
  const mimeType = text(resource.mimeType);
  if (IMAGE_TYPES.has(mimeType)) return imageBlock(mimeType, text(resource.blob));
  return textBlock(`[Resource ${text(resource.uri)} (${mimeType || "binary"}) that cannot be shown.]`);
}

function imageBlock(mediaType: string, data: string): ContentBlock {
  if (!IMAGE_TYPES.has(mediaType) || data === "") {
    return textBlock(`[An image (${mediaType || "unknown type"}) that cannot be shown.]`);
  }
  return jsonBlock("image", { type: "image", source: { type: "base64", media_type: mediaType, data } });
}

/** Numbers with more digits than a number that was read may have kept. */
const LONG = /[\d.]{16,}/g;

function saysTheSame(block: ContentBlock, structured: string): boolean {
  const value = parse(block);
  if (value?.type !== "text") return false;
  try {
    const said = text(value.text);
    if (JSON.stringify(JSON.parse(said)) !== JSON.stringify(JSON.parse(structured))) return false;
    return String(said.match(LONG)) === String(structured.match(LONG));
  } catch {
    return false;
  }
}

function parse(block: ContentBlock): Json | undefined {
  const json = blockJson(block);
  if (!json) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(json));
    return typeof value === "object" && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
