import { randomBytes } from "node:crypto";
import type { Reply, ReplyBlock } from "./reply.ts";
import { thinkingSignature } from "./thinking-signature.ts";
import { CHARS_PER_TOKEN } from "./usage.ts";

/** One content_block_delta of the stream. */
export type Delta = { readonly type: string } & Record<string, string>;

/** A block as the stream sends it: opened, filled by deltas, closed. */
export interface ComposedBlock {
  readonly opening: Record<string, unknown>;
  readonly deltas: readonly Delta[];
  /** The block as a reader has it at the end, and as a reply without streaming carries it. */
  readonly whole: Record<string, unknown>;
}

/** A reply with ids, cut into deltas, and shortened where the request's max_tokens ends it. */
export interface ComposedMessage {
  readonly id: string;
  readonly blocks: readonly ComposedBlock[];
  readonly stopReason: string;
  readonly outputTokens: number;
}

/**
 * composeMessage turns a reply into what goes over the wire. Ids are random, as the real API's are: two requests for the
 * same step get the same content under different ids, and nobody may key on them.
 */
export function composeMessage(reply: Reply, maxTokens: number): ComposedMessage {
  const chars = Math.max(reply.pace?.chars ?? CHARS_PER_TOKEN, 1);
  const blocks: ComposedBlock[] = [];
  let left = maxTokens;
  let stopReason = reply.stopReason;
  for (const block of reply.blocks) {
    const composed = compose(block, chars);
    const tokens = tokensOf(composed.deltas);
    if (tokens > left) {
      if (left > 0) blocks.push(shorten(composed, left));
      stopReason = "max_tokens";
      left = 0;
      break;
    }
    left -= tokens;
    blocks.push(composed);
  }
  return { id: makeId("msg"), blocks, stopReason, outputTokens: Math.max(maxTokens - left, 1) };
}

/** makeId makes an id in the form of the real API's. */
export function makeId(prefix: string): string {
  return `${prefix}_01${randomBytes(16).toString("hex").slice(0, 22)}`;
}

function compose(block: ReplyBlock, chars: number): ComposedBlock {
  switch (block.type) {
    case "text":
      return {
        opening: { type: "text", text: "" },
        deltas: cut(block.text, chars).map((text) => ({ type: "text_delta", text })),
        whole: { type: "text", text: block.text },
      };
    case "thinking": {
      const signature = thinkingSignature(block.thinking);
      const pieces = cut(block.thinking, chars).map((thinking) => ({ type: "thinking_delta", thinking }));
      return {
        opening: { type: "thinking", thinking: "", signature: "" },
        deltas: [...pieces, { type: "signature_delta", signature }],
        whole: { type: "thinking", thinking: block.thinking, signature },
      };
    }
    case "tool_use": {
      const head = { type: "tool_use", id: makeId("toolu"), name: block.name };
      const json = block.rawInput ?? JSON.stringify(block.input);
      return {
        opening: { ...head, input: {} },
        // The real API opens a tool's input with an empty piece.
        deltas: ["", ...cut(json, chars)].map((partial_json) => ({ type: "input_json_delta", partial_json })),
        whole: { ...head, input: block.input },
      };
    }
    case "redacted_thinking":
      return { opening: { ...block }, deltas: [], whole: { ...block } };
    case "unknown":
      return { opening: block.block, deltas: [], whole: block.block };
  }
}

function shorten(block: ComposedBlock, tokens: number): ComposedBlock {
  let left = tokens;
  const deltas = block.deltas.filter((delta) => {
    left -= tokensOf([delta]);
    return left >= 0;
  });
  const text = deltas.map((delta) => delta.text ?? "").join("");
  // Half an input reaches a reader as an empty object.
  const rest = block.whole.type === "tool_use" ? { input: {} } : block.whole.type === "text" ? { text } : {};
  return { opening: block.opening, deltas, whole: { ...block.whole, ...rest } };
}

function tokensOf(deltas: readonly Delta[]): number {
  const lengths = deltas.map(
    ({ text, thinking, partial_json }) => (text ?? thinking ?? partial_json ?? "").length,
  );
  return lengths.reduce((sum, length) => sum + Math.ceil(length / CHARS_PER_TOKEN), 0);
}

/** cut splits text into pieces of at most `chars` characters and never inside one. */
function cut(text: string, chars: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + chars, text.length);
    const unit = text.charCodeAt(end - 1);
    if (end < text.length && unit >= 0xd800 && unit < 0xdc00) end += 1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}
