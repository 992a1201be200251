import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { capText } from "./cap-text.ts";
import { isFetched } from "./is-fetched.ts";
import { LIMITS } from "./limits.ts";
import { blockJson, textBlock } from "./text-block.ts";

/** Bounds of what may be shown of one output. */
export interface OutputBounds {
  /** Characters of all text together. */
  chars: number;
  /** Encoded size of one image or document. */
  mediaBytes: number;
}

const SHOWN: OutputBounds = { chars: LIMITS.toolOutputChars, mediaBytes: LIMITS.mediaBytes };
// Encoded text may take up to six bytes for a character; an event must hold all of it.
const STORED: OutputBounds = { chars: LIMITS.resultBytes / 6, mediaBytes: LIMITS.resultBytes };

/**
 * The one place where the output of any tool is made small enough for the model, whoever ran it (B031, B032): text is
 * cut in the middle, an image or document that is too large becomes a note (B035, B036). Blocks within bounds are
 * passed on as they are, byte for byte.
 */
export function capOutput(content: readonly ContentBlock[], bounds: OutputBounds = SHOWN): ContentBlock[] {
  let left = bounds.chars;
  const out: ContentBlock[] = [];
  for (const block of content) {
    const capped = capBlock(block, left, bounds);
    left = Math.max(0, left - capped.chars);
    if (capped.block) out.push(capped.block);
  }
  return out;
}

/**
 * The whole of an output that is too large for an event, as it is stored beside the log: a JSON array of its blocks, each
 * byte for byte. Undefined when it fits.
 */
export function fullOutput(content: readonly ContentBlock[]): Buffer | undefined {
  const blocks = content.map((block) => blockJson(block) ?? new Uint8Array(0));
  const size = blocks.reduce((sum, json) => sum + json.length, 0);
  if (size <= LIMITS.resultBytes) return undefined;
  const pieces = blocks.flatMap((json, i) => [Buffer.from(i === 0 ? "[" : ","), json]);
  return Buffer.concat([...pieces, Buffer.from("]")]);
}

/** Makes a result fit into an event. Whatever fits is stored whole and can be read back by its position. */
export function capForLog(content: readonly ContentBlock[]): ContentBlock[] {
  const size = content.reduce((sum, block) => sum + (blockJson(block)?.length ?? 0), 0);
  if (size <= LIMITS.resultBytes) return [...content];
  const capped = capOutput(content, STORED);
  const cappedSize = capped.reduce((sum, block) => sum + (blockJson(block)?.length ?? 0), 0);
  if (cappedSize <= LIMITS.resultBytes) return capped;
  // Several images that fit one by one but not together.
  return [textBlock(`[The output was left out: ${size} bytes are more than the log takes.]`)];
}

/** A note in place of a block that is too large or that the provider would have to fetch, or the block itself. */
export function limitMedia(block: ContentBlock, mediaBytes: number = LIMITS.mediaBytes): ContentBlock {
  const size = blockJson(block)?.length;
  if (size === undefined)
    return textBlock(`[A block of type ${block.type} is stored elsewhere and not shown.]`);
  // Measured as it is sent: base64 and all (B036).
  if (isMedia(block) && size > mediaBytes)
    return textBlock(`[${block.type} left out: ${size} bytes encoded, the limit is ${mediaBytes}.]`);
  return isFetched(block)
    ? textBlock(`[${block.type} left out: its content is stored elsewhere and not fetched.]`)
    : block;
}

function capBlock(
  block: ContentBlock,
  left: number,
  bounds: OutputBounds,
): { block?: ContentBlock; chars: number } {
  const limited = limitMedia(block, bounds.mediaBytes);
  const json = blockJson(limited);
  if (isMedia(limited) || !json) return { block: limited, chars: 0 };
  // Cheaper than parsing, and an upper bound of what parsing would give.
  if (json.length <= left) return { block: limited, chars: json.length };
  const text = textOf(limited, json);
  if (text.length <= left && limited.type === "text") return { block: limited, chars: text.length };
  if (left === 0) return { chars: 0 };
  return { block: textBlock(capText(text, left)), chars: left };
}

function textOf(block: ContentBlock, json: Uint8Array): string {
  const source = new TextDecoder().decode(json);
  if (block.type !== "text") return source;
  const { text } = JSON.parse(source) as { text?: unknown };
  return typeof text === "string" ? text : "";
}

function isMedia(block: ContentBlock): boolean {
  return block.type === "image" || block.type === "document";
}
