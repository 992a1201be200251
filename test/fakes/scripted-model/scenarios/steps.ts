import type { Conversation } from "../conversation.ts";
import { type Reply, type ReplyBlock, say } from "../reply.ts";
import { paced } from "./shapes.ts";

/** One step of a script that a test writes into its message. */
interface Step {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly name: string; readonly input: object }[];
  readonly stop_reason?: string;
}

/**
 * steps plays a script out of the message itself: a fenced JSON list with one object a turn,
 * `{"text"?, "thinking"?, "calls"?: [{"name","input"}], "stop_reason"?}`. Past its end the turn ends with a text.
 */
export function steps(conversation: Conversation): Reply {
  const script = readScript(conversation.taskText);
  if (!script) return say("The message holds no fenced JSON list of steps.");
  const step = script[conversation.turns];
  return paced(conversation, step ? toReply(step) : say("The script has ended."));
}

function readScript(text: string): Step[] | undefined {
  try {
    const script: unknown = JSON.parse(/```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(text)?.[1] ?? "");
    return Array.isArray(script) ? (script as Step[]) : undefined;
  } catch {
    return undefined;
  }
}

function toReply({ text, thinking, calls = [], stop_reason }: Step): Reply {
  const blocks: ReplyBlock[] = [];
  if (thinking) blocks.push({ type: "thinking", thinking });
  if (text) blocks.push({ type: "text", text });
  for (const { name, input } of calls) blocks.push({ type: "tool_use", name, input });
  return { blocks, stopReason: stop_reason ?? (calls.length > 0 ? "tool_use" : "end_turn") };
}
