import { type Conversation, hasTool, numberParam } from "../conversation.ts";
import { makeInput } from "../make-input.ts";
import { call, type Reply, say } from "../reply.ts";

const DEFAULT_SLOW_MS = 5_000;
const SLOW_DELTA_MS = 50;
const DEFAULT_LONG_CHARS = 200_000;
const LONG_DELTA_CHARS = 48;

/** plain answers in `words` words (40) of text, `delayMs` (0) apart. */
export function plain(conversation: Conversation): Reply {
  const words = Array.from({ length: numberParam(conversation, "words", 40) }, (_, n) => `word${n + 1}`);
  return paced(conversation, say(`This is the scripted model. ${words.join(" ")}.`));
}

/** slow streams text for `ms` (5000) milliseconds, a delta every 50. */
export function slow(conversation: Conversation): Reply {
  const ms = numberParam(conversation, "ms", DEFAULT_SLOW_MS);
  const deltas = Math.max(Math.round(ms / SLOW_DELTA_MS), 1);
  return { ...say("tick ".repeat(deltas).slice(0, -1)), pace: { delayMs: SLOW_DELTA_MS, chars: 5 } };
}

/** long answers with `chars` (200000) characters of text, beyond ASCII and beyond the basic plane too. */
export function long(conversation: Conversation): Reply {
  const line = "The quick brown fox – größer, 日本語, 🦊🦊 – jumps over the lazy dog.\n";
  const chars = numberParam(conversation, "chars", DEFAULT_LONG_CHARS);
  return { ...say(line.repeat(Math.ceil(chars / line.length))), pace: { chars: LONG_DELTA_CHARS } };
}

/** thinking thinks (one signed block, one redacted), then calls bash if it is offered, thinks again and answers. */
export function thinking(conversation: Conversation): Reply {
  const thought = `Step ${conversation.turns + 1}: the user wants to see me think.`;
  const thoughts = [
    { type: "thinking" as const, thinking: thought },
    {
      type: "redacted_thinking" as const,
      data: Buffer.from(`redacted ${conversation.turns}`).toString("base64"),
    },
  ];
  const isFirst = conversation.calls.length === 0 && hasTool(conversation, "bash");
  const rest = isFirst
    ? call("", { name: "bash", input: { command: "echo thought" } })
    : say("I thought about it.");
  return paced(conversation, { ...rest, blocks: [...thoughts, ...rest.blocks] });
}

/**
 * parallel asks for several tools in one turn: those of `tools` (comma-separated, a name may repeat), else bash twice
 * and the first other tool; then it answers with all the results.
 */
export function parallel(conversation: Conversation): Reply {
  const { calls, params, tools } = conversation;
  if (calls.length > 0) {
    const results = calls.map(
      ({ name, result }) => `${name}${result?.isError ? " (error)" : ""}: ${result?.text}`,
    );
    return paced(conversation, say(`All of them answered.\n${results.join("\n")}`));
  }
  const other = tools.find(({ name }) => name !== "bash" && name.startsWith("mcp_"));
  const wanted = params.get("tools")?.split(",") ?? ["bash", "bash", ...(other ? [other.name] : [])];
  const uses = wanted.flatMap((name, index) => {
    const tool = tools.find((offered) => offered.name === name);
    if (!tool) return [];
    const input =
      name === "bash" ? { command: `echo parallel-${index + 1}` } : makeInput(tool, `parallel-${index + 1}`);
    return [{ name, input }];
  });
  if (uses.length === 0) return say("None of these tools is offered to me.");
  return paced(conversation, call("I will do these together.", ...uses));
}

/** paced gives a reply the pace of the scenario line: `delayMs` between deltas of `chars` characters. */
export function paced(conversation: Conversation, reply: Reply): Reply {
  const delayMs = numberParam(conversation, "delayMs", 0);
  return { ...reply, pace: { delayMs, chars: numberParam(conversation, "chars", delayMs > 0 ? 12 : 4) } };
}
