import type { ContentBlock } from "../../../gen/ganglion/types/v1/content.ts";
import { capText } from "../cap-text.ts";
import type { Turn } from "../session-state.ts";
import { blockJson } from "../text-block.ts";
import { textOf } from "./summary-text.ts";

/** One turn as readable text, each text in it at most `limit` characters. Thinking is not shown. */
export function renderTurn(turn: Turn, limit: number): string {
  if (turn.kind === "user") return `[${turn.position}] user: ${renderBlocks(turn.content, limit)}`;
  const said = turn.blocks.filter(({ type }) => type === "text");
  const calls = turn.calls.flatMap(({ name, serverName, inputJson, result }) => [
    `calls ${serverName === "" ? "" : `${serverName}.`}${name} ${capText(decode(inputJson), limit)}`,
    result
      ? `[${result.position}] ${result.isError ? "error" : "result"}: ${renderBlocks(result.content, limit)}`
      : "no result yet",
  ]);
  const words = renderBlocks(said, limit);
  return [`[${turn.position}] agent: ${words}`, ...calls].join("\n");
}

/** Blocks as readable text; what is no text is named. */
function renderBlocks(blocks: readonly ContentBlock[], limit: number): string {
  return capText(
    blocks
      .map(renderBlock)
      .filter((text) => text !== "")
      .join("\n"),
    limit,
  );
}

function renderBlock(block: ContentBlock): string {
  if (block.type === "thinking" || block.type === "redacted_thinking") return "";
  if (block.data?.$case === "payload") {
    const { excerpt, sizeBytes } = block.data.value;
    return `[${block.type} of ${sizeBytes} bytes, stored beside the log] ${excerpt}`;
  }
  const json = blockJson(block);
  if (!json) return "";
  if (block.type === "text") return textOf(block);
  if (block.type === "image" || block.type === "document")
    return `[${block.type}, ${json.length} bytes encoded]`;
  return decode(json);
}

// Made once: a summary is asked for with a thousand turns.
const decoder = new TextDecoder();

function decode(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
