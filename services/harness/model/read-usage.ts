import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";

/** Reads a usage object; what it leaves out keeps the value known before. Numbers in a stream are totals so far. */
export function readUsage(value: unknown, before: ModelUsage | undefined): ModelUsage | undefined {
  if (typeof value !== "object" || value === null) return before;
  const usage = value as Record<string, unknown>;
  const creation = (usage.cache_creation ?? {}) as Record<string, unknown>;
  const count = (field: unknown, known: bigint | undefined): bigint =>
    typeof field === "number" && Number.isSafeInteger(field) && field >= 0 ? BigInt(field) : (known ?? 0n);
  return {
    inputTokens: count(usage.input_tokens, before?.inputTokens),
    outputTokens: count(usage.output_tokens, before?.outputTokens),
    cacheCreationInputTokens: count(usage.cache_creation_input_tokens, before?.cacheCreationInputTokens),
    cacheReadInputTokens: count(usage.cache_read_input_tokens, before?.cacheReadInputTokens),
    cacheCreation5mInputTokens: count(creation.ephemeral_5m_input_tokens, before?.cacheCreation5mInputTokens),
    cacheCreation1hInputTokens: count(creation.ephemeral_1h_input_tokens, before?.cacheCreation1hInputTokens),
    speed: typeof usage.speed === "string" ? usage.speed : (before?.speed ?? ""),
  };
}
