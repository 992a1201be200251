import { styleText } from "node:util";
import type { ContentBlock } from "../../services/gen/ganglion/types/v1/content.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";

const MAX_TEXT = 96;

/** One line about an event: position, who appended it, what happened. */
export function narrate(event: Event): string {
  const actor = event.actor?.subject.split("/").slice(3).join("/") || event.actor?.subject || "client";
  const position = String(event.position).padStart(3);
  return `${position}  ${actor.padEnd(22)} ${event.type.padEnd(30)} ${shorten(describe(event))}`.trimEnd();
}

/** Colours a line where a person looks at a terminal. */
export function highlight(style: "bold" | "red" | "green" | "yellow" | "dim", text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR
    ? styleText(style, text, { validateStream: false })
    : text;
}

/** The text of content blocks. */
export function textOf(blocks: readonly (ContentBlock | undefined)[]): string {
  return blocks.map((block) => (parse(block).text as string | undefined) ?? "").join("");
}

function describe({ body }: Event): string {
  switch (body?.$case) {
    case "userMessage":
      return textOf(body.value.content);
    case "agentMessage":
      return textOf([body.value.block]);
    case "agentToolUse":
      return `${body.value.name} ${Buffer.from(body.value.inputJson)}`;
    case "agentMcpToolUse":
      return `${body.value.mcpServerName}/${body.value.name} ${Buffer.from(body.value.inputJson)}`;
    case "agentToolResult":
    case "agentMcpToolResult":
      return `${body.value.isError ? "ERROR " : ""}${textOf(body.value.content)}`;
    case "ganglionLeaseAcquired":
      return `${body.value.owner.split("/").at(-1)}, epoch ${body.value.epoch}${body.value.isTakeover ? ", takeover" : ""}`;
    case "ganglionHandProvisioned":
      return `${body.value.handId} (${body.value.driver}, ${body.value.durationMs} ms)`;
    case "ganglionHandLost":
      return `${body.value.handId}: ${body.value.reason}`;
    case "ganglionMcpToolsResolved":
      return `${body.value.mcpServerName}: ${body.value.tools.length} tools`;
    case "spanModelRequestEnd":
      return body.value.isError ? `failed: ${body.value.errorReason}` : `${body.value.upstream} model`;
    case "sessionError":
      return body.value.message;
    default:
      return "";
  }
}

function parse(block: ContentBlock | undefined): Record<string, unknown> {
  if (block?.data?.$case !== "json") return {};
  return JSON.parse(Buffer.from(block.data.value).toString("utf8")) as Record<string, unknown>;
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT - 1)}…` : line;
}
