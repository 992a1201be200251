import { type Conversation, hasTool, numberParam } from "../conversation.ts";
import { makeInput } from "../make-input.ts";
import { call, type Fault, type Reply, type ReplyBlock, say } from "../reply.ts";
import { paced } from "./shapes.ts";

const BIG_INPUT_LINES = 200;

/** error refuses `times` (1) requests with `status` (529) and, if given, `retryAfter` seconds; then it answers. */
export function error(conversation: Conversation, attempt: number): Reply {
  const retryAfter = conversation.params.get("retryAfter");
  const retryAfterSeconds = retryAfter === undefined ? undefined : Number(retryAfter);
  const fault: Fault = {
    kind: "status",
    status: numberParam(conversation, "status", 529),
    retryAfterSeconds,
  };
  return failing(conversation, attempt, say(""), fault) ?? recovered(conversation, attempt);
}

/** sseError sends `after` (0) text deltas and then an error event of `type` (overloaded_error), `times` (1) times. */
export function sseError(conversation: Conversation, attempt: number): Reply {
  const errorType = conversation.params.get("type") ?? "overloaded_error";
  const fault: Fault = { kind: "error-event", after: numberParam(conversation, "after", 0), errorType };
  return failing(conversation, attempt, say(manyWords()), fault) ?? recovered(conversation, attempt);
}

/**
 * cut breaks the connection after `after` (20) deltas, `times` (1) times: `how` is `fin` (default), `rst`, or `end`
 * (the HTTP message is closed in good order), `at` is `tool` (default, in the middle of a big input) or `text`.
 */
export function cut(conversation: Conversation, attempt: number): Reply {
  const how = conversation.params.get("how");
  const fault: Fault = {
    kind: "cut",
    after: numberParam(conversation, "after", 20),
    how: how === "rst" || how === "end" ? how : "fin",
  };
  const isText = conversation.params.get("at") === "text";
  const broken = isText ? say(manyWords()) : bigCall(conversation);
  return (
    failing(conversation, attempt, broken, fault) ??
    (isText ? recovered(conversation, attempt) : toolTurn(conversation))
  );
}

/** stall goes silent after `after` (3) deltas and keeps the connection open, `times` (1) times. */
export function stall(conversation: Conversation, attempt: number): Reply {
  const fault: Fault = { kind: "stall", after: numberParam(conversation, "after", 3) };
  return failing(conversation, attempt, say(manyWords()), fault) ?? recovered(conversation, attempt);
}

/** maxTokens ends `times` (1) replies in the middle of a tool's input with stop_reason max_tokens; then it completes the call. */
export function maxTokens(conversation: Conversation, attempt: number): Reply {
  const whole = bigCall(conversation);
  if (!isFailing(conversation, attempt)) return toolTurn(conversation);
  return paced(conversation, {
    blocks: halved(whole, (json) => json.slice(0, json.length / 2)),
    stopReason: "max_tokens",
  });
}

/** badJson sends `times` (1) tool inputs whose JSON holds a raw line break; then it completes the call. */
export function badJson(conversation: Conversation, attempt: number): Reply {
  const whole = bigCall(conversation);
  if (!isFailing(conversation, attempt)) return toolTurn(conversation);
  return paced(conversation, { ...whole, blocks: halved(whole, (json) => json.replace("\\n", "\n")) });
}

function failing(conversation: Conversation, attempt: number, reply: Reply, fault: Fault): Reply | undefined {
  return isFailing(conversation, attempt) ? { ...paced(conversation, reply), fault } : undefined;
}

function isFailing(conversation: Conversation, attempt: number): boolean {
  return conversation.params.get("times") === "always" || attempt <= numberParam(conversation, "times", 1);
}

function recovered(conversation: Conversation, attempt: number): Reply {
  return paced(conversation, say(`Recovered at attempt ${attempt}.`));
}

/** The call that a fault interrupted, in full; then, when its result is there, a text. */
function toolTurn(conversation: Conversation): Reply {
  const done = conversation.calls.find(({ result }) => result);
  return done
    ? say(`Recovered: ${done.name} answered: ${done.result?.text}`)
    : paced(conversation, bigCall(conversation));
}

function bigCall(conversation: Conversation): Reply {
  const content = Array.from({ length: BIG_INPUT_LINES }, (_, n) => `line ${n + 1}`).join("\n");
  if (hasTool(conversation, "write"))
    return call("", { name: "write", input: { file_path: "big.txt", content } });
  if (hasTool(conversation, "bash"))
    return call("", { name: "bash", input: { command: `cat > big.txt <<'E'\n${content}\nE` } });
  const [tool] = conversation.tools;
  return tool ? call("", { name: tool.name, input: makeInput(tool, content) }) : say(content);
}

function halved(reply: Reply, change: (json: string) => string): ReplyBlock[] {
  return reply.blocks.map((block) =>
    block.type === "tool_use"
      ? { ...block, input: {}, rawInput: change(JSON.stringify(block.input)) }
      : block,
  );
}

function manyWords(): string {
  return Array.from({ length: 400 }, (_, n) => `word${n + 1}`).join(" ");
}
