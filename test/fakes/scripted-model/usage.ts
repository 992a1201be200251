import { createHash } from "node:crypto";
import { type Block, blocksOf, type MessagesRequest } from "./messages-request.ts";

/** Input side of a reply's usage, as the Messages API reports it. */
export interface InputUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
}

/** About four characters make a token, here as everywhere in the stand-in. */
export const CHARS_PER_TOKEN = 4;

const MAX_REMEMBERED = 10_000;

/** countTokens estimates the input tokens of a request. */
export function countTokens(request: MessagesRequest): number {
  const { system, tools, messages } = request;
  return tokensIn(JSON.stringify([system ?? "", tools ?? [], messages]));
}

/**
 * PromptCache remembers prefixes that ended at a cache_control breakpoint, as the real cache does, so that a harness
 * whose prefix is not stable shows it in its usage. It changes the figures only, never the answer.
 */
export class PromptCache {
  readonly #known = new Set<string>();

  measure(request: MessagesRequest): InputUsage {
    const blocks = inOrder(request);
    const total = countTokens(request);
    if (!blocks.some(({ cache_control }) => cache_control)) return usage(total, 0, 0);
    const hash = createHash("sha256").update(request.model);
    let tokens = 0;
    let read = 0;
    let written = 0;
    for (const block of blocks) {
      const { cache_control, ...content } = block;
      const json = JSON.stringify(content);
      tokens += tokensIn(json);
      hash.update(json);
      const key = hash.copy().digest("base64");
      if (this.#known.has(key)) read = tokens;
      if (!cache_control) continue;
      written = tokens;
      this.#remember(key);
    }
    return usage(Math.max(total - written, 0), Math.max(written - read, 0), read);
  }

  #remember(key: string): void {
    this.#known.delete(key);
    this.#known.add(key);
    const [oldest] = this.#known;
    if (this.#known.size > MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest);
  }
}

function usage(input: number, created: number, read: number): InputUsage {
  return { input_tokens: input, cache_creation_input_tokens: created, cache_read_input_tokens: read };
}

/** The order in which the real cache sees a prompt: tools, system, messages. */
function inOrder(request: MessagesRequest): Block[] {
  const system: readonly Block[] =
    typeof request.system === "string" ? [{ type: "text", text: request.system }] : (request.system ?? []);
  const messages = request.messages.flatMap((message) =>
    blocksOf(message).map((block) => ({ ...block, role: message.role })),
  );
  return [...(request.tools ?? []), ...system, ...messages] as Block[];
}

function tokensIn(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}
