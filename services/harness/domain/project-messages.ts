import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { capOutput, limitMedia } from "./cap-output.ts";
import { summaryText } from "./context/summary-text.ts";
import { sendableJson } from "./sendable-json.ts";
import type { AssistantTurn, Summary, Turn, UserTurn } from "./session-state.ts";
import { blockJson } from "./text-block.ts";

/** Part of a request's body. */
export type Piece = string | Uint8Array;

/** One message of a request; each of its blocks is a few pieces. */
export interface Message {
  role: "user" | "assistant";
  blocks: Piece[][];
}

/** A block with its document, wherever that is stored. */
export type Resolve = (block: ContentBlock) => ContentBlock;

/** The conversation as messages: users and model take turns, results stand right behind their calls. */
export function projectMessages(
  summary: Summary | null,
  turns: readonly Turn[],
  resolve: Resolve,
): Message[] {
  const messages: Message[] = [];
  const add = (role: Message["role"], blocks: Piece[][]): void => {
    if (blocks.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else messages.push({ role, blocks });
  };
  if (summary) add("user", [[JSON.stringify({ type: "text", text: summaryText(summary) })]]);
  for (const turn of turns) {
    if (turn.kind === "user") add("user", userBlocks(turn, resolve));
    else {
      add("assistant", assistantBlocks(turn, resolve));
      // All results of a turn, in call order, in the one message that follows it (B013, B014).
      add("user", resultBlocks(turn, resolve));
    }
  }
  return messages;
}

/** Messages as they stand in a body, without the brackets around all of them. */
export function messagePieces(messages: readonly Message[]): Piece[] {
  return join(messages.map(({ role, blocks }) => [`{"role":"${role}","content":[`, ...join(blocks), "]}"]));
}

function userBlocks(turn: UserTurn, resolve: Resolve): Piece[][] {
  return turn.content
    .map(resolve)
    .filter((block) => block.type !== "tool_result" && block.type !== "tool_use" && !isEmptyText(block))
    .map((block) => [sendableJson(limitMedia(block))]);
}

function assistantBlocks(turn: AssistantTurn, resolve: Resolve): Piece[][] {
  return turn.blocks
    .map(resolve)
    .filter((block) => !isEmptyText(block))
    .map((block) => [sendableJson(block)]);
}

function resultBlocks(turn: AssistantTurn, resolve: Resolve): Piece[][] {
  return turn.calls.flatMap((call) => {
    if (!call.result) return [];
    const content = capOutput(call.result.content.map(resolve))
      .filter((block) => !isEmptyText(block))
      .map((block) => [sendableJson(block)]);
    return [
      [
        `{"type":"tool_result","tool_use_id":${JSON.stringify(call.providerCallId)}`,
        ...(content.length > 0 ? [`,"content":[`, ...join(content), "]"] : []),
        call.result.isError ? `,"is_error":true}` : "}",
      ],
    ];
  });
}

// A block is looked at once, not once for every request that it is in.
const emptiness = new WeakMap<ContentBlock, boolean>();

/** Only text can be empty in this sense: a redacted thinking block without visible text stays (B010, B011). */
function isEmptyText(block: ContentBlock): boolean {
  if (block.type !== "text") return false;
  const known = emptiness.get(block);
  if (known !== undefined) return known;
  const isEmpty = readsEmpty(blockJson(block));
  emptiness.set(block, isEmpty);
  return isEmpty;
}

function readsEmpty(json: Uint8Array | undefined): boolean {
  // Longer than any empty one would be written.
  if (!json || json.length > 4096) return false;
  const { text } = JSON.parse(new TextDecoder().decode(json)) as { text?: unknown };
  return typeof text !== "string" || text.trim() === "";
}

function join(items: Piece[][]): Piece[] {
  return items.flatMap((item, i) => (i === 0 ? item : [",", ...item]));
}
