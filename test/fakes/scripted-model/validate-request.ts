import { type Block, blocksOf, type Message, type MessagesRequest, type Tool } from "./messages-request.ts";
import { thinkingSignature } from "./thinking-signature.ts";

const MAX_CACHE_BREAKPOINTS = 4;

/**
 * validateRequest returns what the Messages API would refuse in a request with 400, undefined when it is in order.
 * As strict as the real one where it matters to a harness: pairs of tool_use and tool_result, order of blocks, ids,
 * empty text, thinking passed back unchanged.
 */
export function validateRequest(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "body: must be a JSON object";
  const request = body as MessagesRequest;
  if (typeof request.model !== "string" || request.model === "") return "model: must be a non-empty string";
  if (!Array.isArray(request.messages) || request.messages.length === 0)
    return "messages: at least one message is required";
  return first(
    ...request.messages.map((message: Message, index: number) =>
      checkMessage(message, index, request.messages.length),
    ),
    () =>
      request.messages[0]?.role === "user" ? undefined : "messages.0: the first message must be the user's",
    () => checkPairs(request.messages),
    () => checkTools(request.tools),
    () => checkBreakpoints(request),
  );
}

/** validateMaxTokens checks the one field that token counting does not need. */
export function validateMaxTokens(body: unknown): string | undefined {
  const value = (body as MessagesRequest).max_tokens;
  return Number.isInteger(value) && value >= 1 ? undefined : "max_tokens: must be a whole number from 1";
}

type Check = () => string | undefined;

function first(...checks: Check[]): string | undefined {
  for (const check of checks) {
    const problem = check();
    if (problem) return problem;
  }
  return undefined;
}

function checkMessage(message: Message, index: number, count: number): Check {
  return () => {
    const at = `messages.${index}`;
    if (!["user", "assistant", "system"].includes(message?.role)) return `${at}.role: unknown role`;
    if (typeof message.content === "string") {
      return message.content === "" ? `${at}.content: must not be empty` : undefined;
    }
    if (!Array.isArray(message.content)) return `${at}.content: must be a string or a list of blocks`;
    const mayBeEmpty = message.role === "assistant" && index === count - 1;
    if (message.content.length === 0 && !mayBeEmpty) return `${at}.content: must not be empty`;
    return first(
      ...message.content.map(
        (block: Block, n: number) => () => checkBlock(block, message.role, `${at}.content.${n}`),
      ),
    );
  };
}

function checkBlock(block: Block, role: string, at: string): string | undefined {
  switch (block?.type) {
    case "text":
      return typeof block.text === "string" && block.text !== ""
        ? undefined
        : `${at}.text: must be a non-empty string`;
    case "tool_use":
      if (role !== "assistant") return `${at}: tool_use belongs in an assistant message`;
      return typeof block.input === "object" && block.input !== null
        ? undefined
        : `${at}.input: must be an object`;
    case "tool_result":
      if (role !== "user") return `${at}: tool_result belongs in a user message`;
      return block.is_error === true && !block.content
        ? `${at}.content: must not be empty when is_error is set`
        : undefined;
    case "thinking":
      // A model's thinking is signed: a harness passes it back byte for byte or not at all.
      return block.signature === thinkingSignature(String(block.thinking))
        ? undefined
        : `${at}: invalid signature in thinking block`;
    default:
      return typeof block?.type === "string" ? undefined : `${at}.type: is required`;
  }
}

/** Every tool_use is answered in the very next message, each exactly once, results before anything else. */
function checkPairs(messages: readonly Message[]): string | undefined {
  const seen = new Set<unknown>();
  for (const [index, message] of messages.entries()) {
    const uses = blocksOf(message).filter(({ type }) => type === "tool_use");
    for (const { id } of uses) {
      if (typeof id !== "string" || !/^[a-zA-Z0-9_-]+$/.test(id))
        return `messages.${index}: tool_use id is malformed`;
      if (seen.has(id)) return `messages.${index}: tool_use ids must be unique`;
      seen.add(id);
    }
    const problem = checkAnswers(
      index,
      uses.map(({ id }) => id),
      messages[index + 1],
    );
    if (problem) return problem;
    if (index === 0 && blocksOf(message).some(({ type }) => type === "tool_result")) {
      return "messages.0: tool_result without the tool_use it answers";
    }
  }
  return undefined;
}

function checkAnswers(index: number, ids: readonly unknown[], next: Message | undefined): string | undefined {
  const blocks = next ? blocksOf(next) : [];
  const answers = blocks.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id);
  const unanswered = ids.filter((id) => !answers.includes(id));
  if (unanswered.length > 0)
    return `messages.${index}: tool_use without a tool_result right after it: ${unanswered.join(", ")}`;
  const stray = answers.filter((id) => !ids.includes(id));
  if (stray.length > 0)
    return `messages.${index + 1}: tool_result without the tool_use it answers: ${stray.join(", ")}`;
  if (new Set(answers).size !== answers.length)
    return `messages.${index + 1}: more than one tool_result for a tool_use`;
  const lastResult = blocks.findLastIndex(({ type }) => type === "tool_result");
  return lastResult >= answers.length
    ? `messages.${index + 1}: tool_result blocks come before other content`
    : undefined;
}

function checkTools(tools: readonly Tool[] | undefined): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return "tools: must be a list";
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(tool?.name ?? ""))
      return `tools.${index}.name: must match ^[a-zA-Z0-9_-]{1,128}$`;
    if (names.has(tool.name)) return "tools: names must be unique";
    names.add(tool.name);
    const isCustom = tool.type === undefined || tool.type === "custom";
    if (isCustom && (tool.input_schema as { type?: string })?.type !== "object") {
      return `tools.${index}.input_schema.type: must be "object"`;
    }
  }
  return undefined;
}

function checkBreakpoints(request: MessagesRequest): string | undefined {
  const system = Array.isArray(request.system) ? (request.system as Block[]) : [];
  const blocks = [
    ...system,
    ...(request.tools ?? []),
    ...request.messages.flatMap((message) => blocksOf(message)),
  ];
  const count = blocks.filter(({ cache_control }) => cache_control).length;
  return count > MAX_CACHE_BREAKPOINTS
    ? `at most ${MAX_CACHE_BREAKPOINTS} blocks may carry cache_control, found ${count}`
    : undefined;
}
