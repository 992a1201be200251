import type { Conversation } from "../conversation.ts";
import type { Reply } from "../reply.ts";
import { csvAnalysis } from "./csv-analysis.ts";
import { defaultConversation } from "./default-conversation.ts";
import { badJson, cut, error, maxTokens, sseError, stall } from "./faults.ts";
import { long, parallel, plain, slow, thinking } from "./shapes.ts";
import { steps } from "./steps.ts";
import { empty, pauseTurn, refusal, stop, truncatedText, unknownBlock } from "./stop-reasons.ts";

/**
 * Scenario answers one request. It is a function of the conversation, so that a second brain that repeats a request gets
 * the same answer; `attempt` (from 1) counts requests under the same ruling message and is for faults that pass.
 */
export type Scenario = (conversation: Conversation, attempt: number) => Reply;

const SCENARIOS: ReadonlyMap<string, Scenario> = new Map(
  Object.entries({
    default: defaultConversation,
    "csv-analysis": csvAnalysis,
    plain,
    slow,
    long,
    thinking,
    parallel,
    steps,
    error,
    "sse-error": sseError,
    cut,
    stall,
    "max-tokens": maxTokens,
    "bad-json": badJson,
    "truncated-text": truncatedText,
    "pause-turn": pauseTurn,
    refusal,
    stop,
    "unknown-block": unknownBlock,
    empty,
  } satisfies Record<string, Scenario>),
);

/** findScenario returns the scenario of that name; undefined when there is none. */
export function findScenario(name: string): Scenario | undefined {
  return SCENARIOS.get(name);
}
