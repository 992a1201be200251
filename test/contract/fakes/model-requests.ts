import type Anthropic from "@anthropic-ai/sdk";

/** A request whose answer a test may take whole or as a stream. */
export type Ask = Omit<Anthropic.MessageCreateParamsNonStreaming, "stream">;

/** The model that the tests ask for. */
export const MODEL = "claude-opus-5-5";

/** A tool with two inputs. */
export const WRITE: Anthropic.Tool = {
  name: "write",
  input_schema: {
    type: "object",
    properties: { file_path: { type: "string" }, content: { type: "string" } },
    required: ["file_path", "content"],
  },
};

/** ask is a request with that text and those tools. */
export const ask = (text: string, tools: Anthropic.Tool[] = []): Ask => ({
  model: MODEL,
  max_tokens: 16_000,
  messages: [{ role: "user", content: text }],
  ...(tools.length > 0 ? { tools } : {}),
});

/** usesOf gives the calls in an answer. */
export const usesOf = (message: Anthropic.Message) =>
  message.content.filter((block) => block.type === "tool_use");

/** textIn gives the text of an answer. */
export const textIn = (message: Anthropic.Message) =>
  message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
