import { type Conversation, hasTool, type ToolCall } from "../conversation.ts";
import { makeInput } from "../make-input.ts";
import type { Tool } from "../messages-request.ts";
import { call, type Reply, say } from "../reply.ts";
import { isHandLost } from "../tool-result.ts";

const MCP_TOOL = /^mcp_/;
const QUOTE_CHARS = 400;
const MAX_RETRIES = 3;

/**
 * defaultConversation works for any agent: it does what the latest message plainly asks for (`call <tool> for <x>`,
 * `call <tool> with {json}`, `Run: <command>`, `use the … MCP server`), reports the results in text and ends its turn.
 */
export function defaultConversation(conversation: Conversation): Reply {
  const wanted = wantedCalls(conversation);
  if (conversation.calls.length > 0) return afterCalls(conversation, wanted);
  if (wanted.length > 0)
    return call(`Hello! This is the scripted model. I will call ${names(wanted)}.`, ...wanted);
  if (asksForMcp(conversation.taskText)) return say("No MCP tool is offered to me, so I cannot use one.");
  return say(`Hello! This is the scripted model. You wrote: ${quote(conversation.taskText)}`);
}

/** firstMcpTool picks the tool that `preferred` names (with or without its server's prefix), else one that is easy to call. */
export function firstMcpTool(tools: readonly Tool[], preferred: readonly string[]): Tool | undefined {
  const offered = tools.filter(({ name }) => MCP_TOOL.test(name));
  const plain = (name: string) => name.toLowerCase().replaceAll("-", "_");
  for (const wish of preferred) {
    const found =
      tools.find(({ name }) => name === wish) ??
      offered.find(({ name }) => plain(name).endsWith(plain(wish)));
    if (found) return found;
  }
  return offered[0];
}

type Wanted = { name: string; input: object };

function wantedCalls(conversation: Conversation): Wanted[] {
  const { taskText, tools } = conversation;
  const command = /^\s*Run:\s*(.+)$/m.exec(taskText)?.[1];
  if (command && hasTool(conversation, "bash")) return [{ name: "bash", input: { command: command.trim() } }];
  const wanted: Wanted[] = [];
  for (const [, name, json, topic] of taskText.matchAll(
    /\bcall ([\w-]+)(?: with (\{.*\})| for ([^\n.!?,]+))?/gi,
  )) {
    const tool = tools.find((offered) => offered.name === name);
    if (tool)
      wanted.push({ name: tool.name, input: parseObject(json) ?? makeInput(tool, topic ?? "an example") });
  }
  if (wanted.length > 0 || !asksForMcp(taskText)) return wanted;
  const tool = firstMcpTool(tools, ["echo", "get-sum"]);
  return tool ? [{ name: tool.name, input: makeInput(tool, "hello from the scripted model") }] : [];
}

function afterCalls(conversation: Conversation, wanted: Wanted[]): Reply {
  const { calls } = conversation;
  const lost = calls.filter(({ result }) => result?.isError && isHandLost(result.text));
  const last = calls.slice(-Math.max(wanted.length, 1));
  if (lost.length > 0 && lost.length <= MAX_RETRIES && last.some((one) => lost.includes(one))) {
    return call(
      "The hand was lost; I will try again in a new one.",
      ...last.map(({ name, input }) => ({ name, input })),
    );
  }
  return say(last.map(report).join("\n"));
}

function report({ name, result }: ToolCall): string {
  if (!result) return `${name} gave no answer.`;
  return result.isError ? `${name} failed: ${quote(result.text)}` : `${name} answered: ${quote(result.text)}`;
}

function asksForMcp(text: string): boolean {
  return /\buse (?:the |an? )?(?:[\w-]+ )?mcp\b/i.test(text);
}

function names(wanted: Wanted[]): string {
  return [...new Set(wanted.map(({ name }) => name))].join(" and ");
}

function quote(text: string): string {
  return text.length > QUOTE_CHARS ? `${text.slice(0, QUOTE_CHARS)}…` : text;
}

function parseObject(json: string | undefined): object | undefined {
  try {
    const value: unknown = JSON.parse(json ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
