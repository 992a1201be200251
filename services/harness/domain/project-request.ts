import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { capOutput, limitMedia } from "./cap-output.ts";
import { LIMITS } from "./limits.ts";
import { sendableJson } from "./sendable-json.ts";
import type { AssistantTurn, SessionState, UserTurn } from "./session-state.ts";
import { blockJson } from "./text-block.ts";
import { toolCatalog } from "./tool-catalog.ts";

/** Name and version of the context strategy that this projection is. */
export const CONTEXT_STRATEGY = "full/1";

type Piece = string | Uint8Array;

/**
 * Builds the body of a Messages request from the folded log: all of it, including input that is still queued. Pure and
 * exact: two brains that folded the same log send the same bytes (B014). Blocks of the model are spliced in as they
 * came, byte for byte (B008, B010). Throws rather than build a request with an unanswered call in it (law L4).
 */
export function projectRequest(state: SessionState): Buffer {
  if (state.openCalls.size > 0) throw new Error("a call is unanswered");
  if (!state.agent || state.agent.model.id === "") throw new Error("the agent names no model");
  const { model, system } = state.agent;
  const maxTokens = Math.min(
    LIMITS.answerTokens * 2 ** Math.min(state.truncatedAnswers, 8),
    LIMITS.answerTokensAtMost,
  );
  const messages = projectMessages(state);
  if (messages.length === 0) throw new Error("the conversation is empty");
  const tools = toolCatalog(state).offered.map(({ name, description, inputSchema }) =>
    JSON.stringify({ name, description, input_schema: inputSchema }),
  );
  const pieces: Piece[] = [`{"model":${JSON.stringify(model.id)},"max_tokens":${maxTokens},"stream":true`];
  // The API's own placement: it marks the end of the longest prefix that stays the same.
  pieces.push(`,"cache_control":{"type":"ephemeral"}`);
  // What is the API's own default is left out: models that do not know the setting refuse it by name.
  if (model.effort && model.effort !== "high") {
    pieces.push(`,"output_config":{"effort":${JSON.stringify(model.effort)}}`);
  }
  if (model.speed && model.speed !== "standard") pieces.push(`,"speed":${JSON.stringify(model.speed)}`);
  if (model.inferenceGeo) pieces.push(`,"inference_geo":${JSON.stringify(model.inferenceGeo)}`);
  if (system !== "") pieces.push(`,"system":${JSON.stringify(system)}`);
  if (tools.length > 0) pieces.push(`,"tools":[${tools.join(",")}]`);
  pieces.push(`,"messages":[`, ...join(messages), "]}");
  return Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)));
}

interface Message {
  role: "user" | "assistant";
  blocks: Piece[][];
}

function projectMessages(state: SessionState): Piece[][] {
  const messages: Message[] = [];
  const add = (role: Message["role"], blocks: Piece[][]): void => {
    if (blocks.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else messages.push({ role, blocks });
  };
  for (const turn of [...state.turns, ...state.queued]) {
    if (turn.kind === "user") add("user", userBlocks(turn));
    else {
      add("assistant", assistantBlocks(turn));
      // All results of a turn, in call order, in the one message that follows it (B013, B014).
      add("user", resultBlocks(turn));
    }
  }
  return messages.map(({ role, blocks }) => [`{"role":"${role}","content":[`, ...join(blocks), "]}"]);
}

function userBlocks(turn: UserTurn): Piece[][] {
  return turn.content
    .filter((block) => block.type !== "tool_result" && block.type !== "tool_use" && !isEmptyText(block))
    .map((block) => [sendableJson(limitMedia(block))]);
}

function assistantBlocks(turn: AssistantTurn): Piece[][] {
  return turn.blocks.filter((block) => !isEmptyText(block)).map((block) => [sendableJson(block)]);
}

function resultBlocks(turn: AssistantTurn): Piece[][] {
  return turn.calls.flatMap((call) => {
    if (!call.result) return [];
    const content = capOutput(call.result.content)
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
