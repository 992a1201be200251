import Anthropic from "@anthropic-ai/sdk";
import type { TestModel } from "../../kit/scripted-model.ts";

/**
 * createDirectClient returns what asks the model itself with the official SDK, streaming, and resolves with the time in
 * milliseconds from the call to the first text, once the answer is complete. Its connection is kept open.
 */
export function createDirectClient(
  { url, apiKey }: TestModel,
  { model, system }: { readonly model: string; readonly system: string },
): (text: string) => Promise<number> {
  const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  return async (text) => {
    const begun = performance.now();
    let firstTextMs = Number.NaN;
    const stream = client.messages.stream({
      model,
      system,
      max_tokens: 32_000,
      messages: [{ role: "user", content: [{ type: "text", text }] }],
    });
    stream.once("text", () => {
      firstTextMs = performance.now() - begun;
    });
    await stream.finalMessage();
    return firstTextMs;
  };
}
