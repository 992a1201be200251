import type { ContentBlock } from "../../../gen/ganglion/types/v1/content.ts";
import type { Summary } from "../session-state.ts";
import { blockJson } from "../text-block.ts";

/** A summary as the model reads it, with what it stands for and how to get that back. */
export function summaryText({ block, throughPosition }: Summary): string {
  return (
    `[The conversation up to position ${throughPosition} of the log was replaced by this summary. ` +
    `All of it is still in the log; the tool session_log, where it is offered, reads it back.]\n\n${textOf(block)}`
  );
}

const decoder = new TextDecoder();

/** The text of a text block; empty for any other. */
export function textOf(block: ContentBlock): string {
  const json = blockJson(block);
  if (!json || block.type !== "text") return "";
  const { text } = JSON.parse(decoder.decode(json)) as { text?: unknown };
  return typeof text === "string" ? text : "";
}
