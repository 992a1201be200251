import type { ContentBlock, PayloadRef } from "../../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { payloadKey } from "../payload-contents.ts";
import { blockJson } from "../text-block.ts";
import { textOf } from "./summary-text.ts";

/** Documents that are stored beside the log, by payloadKey(). */
export type RawContents = ReadonlyMap<string, Uint8Array>;

/**
 * One event as the model reads it from its log: position, type, and what was said, called or answered, from `offset` on.
 * Undefined = it says nothing of that kind, or does not contain the text that is looked for. Thinking is never shown.
 */
export function describeEvent(
  event: Event,
  contents: RawContents,
  limit: number,
  offset: number,
  wanted: string,
): string | undefined {
  const said = describeBody(event, contents);
  if (!said) return undefined;
  const { type, text } = said;
  if (wanted !== "" && !text.toLowerCase().includes(wanted.toLowerCase())) return undefined;
  const shown = text.slice(offset, offset + limit);
  const left = text.length - offset - shown.length;
  const more = left > 0 ? `\n[${left} more characters: text_offset ${offset + shown.length}]` : "";
  return `[position ${event.position}, ${type}, ${event.id}]\n${shown}${more}`;
}

/** References in an event that describeEvent needs the contents of. */
export function payloadsOf({ body }: Event): PayloadRef[] {
  switch (body?.$case) {
    case "agentToolResult":
    case "agentMcpToolResult":
      if (body.value.fullOutput) return [body.value.fullOutput];
      return refsIn(body.value.content);
    case "userMessage":
    case "userCustomToolResult":
    case "userToolResult":
    case "ganglionLateToolResult":
      return refsIn(body.value.content);
    case "agentMessage":
      return refsIn(body.value.block ? [body.value.block] : []);
    default:
      return [];
  }
}

function describeBody(event: Event, contents: RawContents): { type: string; text: string } | undefined {
  const { body } = event;
  const type = (name: string): string => event.type || name;
  switch (body?.$case) {
    case "userMessage":
      return { type: type("user.message"), text: textIn(body.value.content, contents) };
    case "agentMessage":
      return {
        type: type("agent.message"),
        text: textIn(body.value.block ? [body.value.block] : [], contents),
      };
    case "agentToolUse":
      return { type: type("agent.tool_use"), text: callText(body.value) };
    case "agentCustomToolUse":
      return { type: type("agent.custom_tool_use"), text: callText(body.value) };
    case "agentMcpToolUse":
      return {
        type: type("agent.mcp_tool_use"),
        text: `${body.value.mcpServerName}.${callText(body.value)}`,
      };
    case "agentToolResult":
      return {
        type: type("agent.tool_result"),
        text: resultText(body.value.toolUseId, body.value, contents),
      };
    case "agentMcpToolResult":
      return {
        type: type("agent.mcp_tool_result"),
        text: resultText(body.value.mcpToolUseId, body.value, contents),
      };
    case "userCustomToolResult":
      return {
        type: type("user.custom_tool_result"),
        text: resultText(body.value.customToolUseId, body.value, contents),
      };
    case "userToolResult":
      return { type: type("user.tool_result"), text: resultText(body.value.toolUseId, body.value, contents) };
    case "ganglionLateToolResult":
      return {
        type: type("ganglion.late_tool_result"),
        text: resultText(body.value.toolUseId, body.value, contents),
      };
    case "agentThreadContextCompacted":
      return {
        type: type("agent.thread_context_compacted"),
        text: `summary of everything up to position ${body.value.throughPosition}:\n${body.value.summary ? textOf(body.value.summary) : ""}`,
      };
    case "userInterrupt":
      return { type: type("user.interrupt"), text: "The user interrupted." };
    case "sessionError":
      return { type: type("session.error"), text: body.value.message };
    case "sessionStatusIdle":
      return { type: type("session.status_idle"), text: "The turn ended." };
    default:
      return undefined;
  }
}

function callText({ name, inputJson }: { name: string; inputJson: Uint8Array }): string {
  return `${name} ${decode(inputJson)}`;
}

function resultText(
  callId: string,
  result: {
    content: readonly ContentBlock[];
    isError?: boolean | undefined;
    fullOutput?: PayloadRef | undefined;
  },
  contents: RawContents,
): string {
  const head = `${result.isError ? "error of" : "result of"} ${callId}:\n`;
  const full = result.fullOutput && contents.get(payloadKey(result.fullOutput));
  return head + (full ? fullText(full) : textIn(result.content, contents));
}

/** A full output is a JSON list of blocks; one that somebody else wrote may be plain text. */
function fullText(bytes: Uint8Array): string {
  const text = decode(bytes);
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.map((block) => documentText(block)).join("\n") : text;
  } catch {
    return text;
  }
}

function textIn(blocks: readonly ContentBlock[], contents: RawContents): string {
  return blocks
    .map((block) => {
      const json =
        block.data?.$case === "payload" ? contents.get(payloadKey(block.data.value)) : blockJson(block);
      return json ? documentText(JSON.parse(decode(json))) : `[${block.type}]`;
    })
    .join("\n");
}

function documentText(document: unknown): string {
  const { type, text } = (document ?? {}) as { type?: unknown; text?: unknown };
  if (type === "text") return typeof text === "string" ? text : "";
  if (type === "thinking" || type === "redacted_thinking") return "";
  const json = JSON.stringify(document);
  return type === "image" || type === "document" ? `[${type}, ${json.length} characters encoded]` : json;
}

function refsIn(blocks: readonly ContentBlock[]): PayloadRef[] {
  return blocks.flatMap(({ data }) => (data?.$case === "payload" ? [data.value] : []));
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
