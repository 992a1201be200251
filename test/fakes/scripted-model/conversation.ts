import { blocksOf, type Message, type MessagesRequest, type Tool, textOf } from "./messages-request.ts";

/** A tool call of the conversation and, once it is there, its result. */
export interface ToolCall {
  readonly name: string;
  readonly input: Record<string, unknown>;
  readonly result?: { readonly text: string; readonly isError: boolean };
}

/** What a scenario sees of a request. Everything in it follows from the request alone. */
export interface Conversation {
  /** The scenario's name; "default" when no message names one. */
  readonly scenario: string;
  /** `key=value` words of the scenario line. */
  readonly params: ReadonlyMap<string, string>;
  /** The message that rules: the latest one with a scenario line, else the latest one a person wrote. */
  readonly task: Message;
  readonly taskText: string;
  /** Assistant turns, and calls with their results, since that message. */
  readonly turns: number;
  readonly calls: readonly ToolCall[];
  /** The last message is the assistant's own: a turn to be continued. */
  readonly continues: boolean;
  readonly tools: readonly Tool[];
}

const SCENARIO_LINE = /^\s*scenario:[ \t]*([a-z0-9-]+)[ \t]*(.*)$/m;

/** readConversation finds the ruling message and what has happened since. */
export function readConversation(request: MessagesRequest): Conversation {
  const { messages, tools = [] } = request;
  const ruling = findRuling(messages);
  const task = messages[ruling] as Message;
  const since = messages.slice(ruling + 1);
  const [, name, words = ""] = SCENARIO_LINE.exec(writtenText(task)) ?? [];
  return {
    scenario: name ?? "default",
    params: readParams(words),
    task,
    taskText: writtenText(task),
    turns: since.filter((message) => message.role === "assistant").length,
    calls: readCalls(since),
    continues: messages.at(-1)?.role === "assistant",
    tools,
  };
}

/** numberParam reads a whole number from the scenario line. */
export function numberParam(conversation: Conversation, name: string, fallback: number): number {
  const value = Number(conversation.params.get(name) ?? fallback);
  return Number.isFinite(value) && value >= 0 ? Math.floor(value) : fallback;
}

/** hasTool tells whether the request offers a tool of that name. */
export function hasTool(conversation: Conversation, name: string): boolean {
  return conversation.tools.some((tool) => tool.name === name);
}

function findRuling(messages: readonly Message[]): number {
  const named = messages.findLastIndex((message) => SCENARIO_LINE.test(writtenText(message)));
  if (named >= 0) return named;
  // Text beside tool results is a remark on them and starts nothing new.
  const isWritten = (message: Message) =>
    writtenText(message).trim() !== "" && !blocksOf(message).some(({ type }) => type === "tool_result");
  return Math.max(messages.findLastIndex(isWritten), 0);
}

function writtenText(message: Message): string {
  return message.role === "user" ? textOf(blocksOf(message)) : "";
}

function readParams(words: string): Map<string, string> {
  const pairs = words.split(/\s+/).map((word) => word.split("=", 2) as [string, string?]);
  return new Map(pairs.filter(([key]) => key).map(([key, value]) => [key, value ?? "true"]));
}

function readCalls(messages: readonly Message[]): ToolCall[] {
  const blocks = messages.flatMap((message) => blocksOf(message));
  const results = new Map(blocks.filter(({ type }) => type === "tool_result").map((b) => [b.tool_use_id, b]));
  return blocks
    .filter(({ type }) => type === "tool_use")
    .map((use) => {
      const answer = results.get(use.id);
      const result = answer && { text: textOf(answer.content), isError: answer.is_error === true };
      return { name: String(use.name), input: use.input as Record<string, unknown>, result };
    });
}
