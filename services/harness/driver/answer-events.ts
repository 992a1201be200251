import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import { PERMISSION } from "../domain/proto-values.ts";
import type { KnownTool, ToolCatalog } from "../domain/tool-catalog.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { AnswerBlock } from "../ports/model.ts";
import type { Judgement } from "./judge-calls.ts";

/** Exactly one event for each block of an answer, in the block's order, under the id that its preview carried. */
export function answerEvents(
  blocks: readonly AnswerBlock[],
  spanId: string,
  catalog: ToolCatalog,
  judgements: ReadonlyMap<AnswerBlock, Judgement>,
  idOf: (index: number) => string,
): NewEvent[] {
  return blocks.map((block, place) => ({
    id: idOf(block.index),
    body: bodyOf(block, spanId, place, catalog, judgements.get(block)),
  }));
}

/** Type of the event that a block will become, for its preview; undefined = it is not shown while it comes. */
export function previewType(blockType: string): string | undefined {
  if (blockType === "text") return "agent.message";
  return blockType === "thinking" || blockType === "redacted_thinking" ? "agent.thinking" : undefined;
}

function bodyOf(
  block: AnswerBlock,
  spanId: string,
  place: number,
  catalog: ToolCatalog,
  judgement: Judgement | undefined,
): NewEvent["body"] {
  const content: ContentBlock = {
    type: block.type,
    data: { $case: "json", value: Buffer.from(block.json) },
  };
  const common = { block: content, modelRequestStartId: spanId, blockIndex: place };
  if (block.call) return callBody(block.call, catalog.byModelName.get(block.call.name), common, judgement);
  switch (block.type) {
    case "text":
      return { $case: "agentMessage", value: common };
    case "thinking":
    case "redacted_thinking":
      return { $case: "agentThinking", value: common };
    default:
      return { $case: "ganglionProviderBlock", value: common };
  }
}

function callBody(
  call: NonNullable<AnswerBlock["call"]>,
  tool: KnownTool | undefined,
  common: { block: ContentBlock; modelRequestStartId: string; blockIndex: number },
  judgement: Judgement = NOT_PERMITTED,
): NewEvent["body"] {
  const value = {
    ...common,
    providerCallId: call.providerCallId,
    inputJson: Buffer.from(call.inputJson),
  };
  switch (tool?.kind) {
    case "custom":
      return { $case: "agentCustomToolUse", value: { ...value, name: tool.name } };
    case "mcp":
      return {
        $case: "agentMcpToolUse",
        value: {
          ...value,
          mcpServerName: tool.serverName,
          name: tool.name,
          ...judgement,
        },
      };
    case "built-in":
      return {
        $case: "agentToolUse",
        value: { ...value, name: tool.name, ...judgement },
      };
    default:
      // A name that was never offered runs nowhere; the model is told (settle-call.ts).
      return {
        $case: "agentToolUse",
        value: {
          ...value,
          // As much of it as the log takes; it is for reading only.
          name: call.name.slice(0, 128) || "unknown",
          ...NOT_PERMITTED,
          policy: "unknown_tool",
        },
      };
  }
}

// Nobody has decided on it: nothing allows it.
const NOT_PERMITTED: Judgement = {
  permission: PERMISSION.DENY,
  policy: "",
  evaluationReason: "",
  evaluator: "",
};
