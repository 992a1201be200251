import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { visible, visibleLines } from "./visible-text.ts";

/** An event in words: who, what kind of who, and what. */
export interface EventWords {
  readonly who: string;
  readonly kind: "user" | "agent" | "tool" | "hand" | "brain" | "session" | "error";
  readonly text: string;
}

const MAX_INPUT = 200;
const MAX_RESULT_LINES = 12;
const STOPS = [
  "",
  "end of turn",
  "waits for an answer",
  "retries are used up",
  "budget reached",
  "the model refused",
];

/** describeEvent says what happened, for people; undefined for what only programs care about. */
export function describeEvent(event: Event): EventWords | undefined {
  const { body } = event;
  switch (body?.$case) {
    case "userMessage":
      return { who: "user", kind: "user", text: textOf(body.value.content) };
    case "userInterrupt":
      return { who: "user", kind: "user", text: "interrupt" };
    case "userToolConfirmation":
      return {
        who: "user",
        kind: "user",
        text: body.value.result === 1 ? "allowed the call" : "denied the call",
      };
    case "userCustomToolResult":
    case "userToolResult":
      return { who: "user", kind: "tool", text: shorten(textOf(body.value.content)) };
    case "agentMessage":
      return { who: "agent", kind: "agent", text: textOf(body.value.block ? [body.value.block] : []) };
    case "agentToolUse":
    case "agentCustomToolUse":
      return { who: "call", kind: "tool", text: `${body.value.name} ${inputOf(body.value.inputJson)}` };
    case "agentMcpToolUse":
      return {
        who: "call",
        kind: "tool",
        text: `${body.value.mcpServerName}/${body.value.name} ${inputOf(body.value.inputJson)}`,
      };
    case "agentToolResult":
    case "agentMcpToolResult": {
      const { isError, content } = body.value;
      return {
        who: isError ? "error" : "result",
        kind: isError ? "error" : "tool",
        text: shorten(textOf(content)),
      };
    }
    case "sessionStatusIdle":
      return {
        who: "session",
        kind: "session",
        text: `idle: ${STOPS[body.value.stopReason?.type ?? 0] || "idle"}`,
      };
    case "sessionStatusTerminated":
      return { who: "session", kind: "session", text: `over (${body.value.reason})` };
    case "sessionStatusRescheduled":
      return { who: "session", kind: "session", text: "trying again" };
    case "sessionError":
      return { who: "error", kind: "error", text: `${body.value.errorType}: ${body.value.message}` };
    case "ganglionLeaseAcquired": {
      const { owner, epoch, isTakeover } = body.value;
      const name = owner.slice(owner.lastIndexOf("/") + 1);
      return {
        who: "brain",
        kind: "brain",
        text: `${name} ${isTakeover ? "took over" : "drives"} (epoch ${epoch})`,
      };
    }
    case "ganglionHandProvisioned":
      return {
        who: "hand",
        kind: "hand",
        text: `${body.value.handId} is ready (${body.value.driver}, ${body.value.durationMs} ms)`,
      };
    case "ganglionHandLost":
      return { who: "hand", kind: "hand", text: `${body.value.handId} is gone: ${body.value.reason}` };
    case "ganglionModelRetryScheduled":
      return {
        who: "brain",
        kind: "brain",
        text: `asks the model again (${body.value.reason}, attempt ${body.value.nextAttempt})`,
      };
    default:
      return undefined;
  }
}

/** textOf joins the text of blocks; other kinds are named. */
export function textOf(content: readonly ContentBlock[]): string {
  return content
    .map((block) => {
      if (block.data?.$case !== "json") return `[${block.type}]`;
      const { text } = JSON.parse(Buffer.from(block.data.value).toString("utf8")) as { text?: unknown };
      return typeof text === "string" ? text : `[${block.type}]`;
    })
    .join("\n");
}

function inputOf(bytes: Uint8Array): string {
  const text = visible(Buffer.from(bytes).toString("utf8"));
  return text.length > MAX_INPUT ? `${text.slice(0, MAX_INPUT - 1)}…` : text;
}

function shorten(text: string): string {
  const lines = visibleLines(text.trimEnd()).split("\n");
  const more = lines.length - MAX_RESULT_LINES;
  return more > 0
    ? [...lines.slice(0, MAX_RESULT_LINES), `… ${more} more lines`].join("\n")
    : lines.join("\n");
}
