import type { ContentBlock } from "../../../gen/ganglion/types/v1/content.ts";
import { keptPrefix } from "../kept-turns.ts";
import { LIMITS } from "../limits.ts";
import type { SessionState, Turn } from "../session-state.ts";
import { blockSize } from "../text-block.ts";
import { toolCatalog } from "../tool-catalog.ts";

const BYTES_PER_TOKEN = 4;
/** What the model reads of an image does not depend on its encoded size. */
const IMAGE_TOKENS = 1600;

/**
 * How much of the window the next request would take: what the provider reported for the newest one and its answer, and
 * an estimate for what came since; an estimate of everything when nothing was reported since the last change.
 */
export function contextTokens(state: SessionState): number {
  const queued = sum(state.queued.map((turn) => turnTokens(turn)));
  const { reported } = state;
  if (reported) return reported.tokens + queued + allSince(state.turns, reported.position);
  const tools = toolCatalog(state).offered.map((tool) => JSON.stringify(tool).length);
  const rest =
    (state.agent?.system.length ?? 0) + (state.summary ? blockSize(state.summary.block) : 0) + sum(tools);
  return Math.ceil(rest / BYTES_PER_TOKEN) + queued + sum(state.turns.map((turn) => turnTokens(turn)));
}

/** Estimate for one turn as the model is shown it. */
export function turnTokens(turn: Turn): number {
  if (turn.kind === "user") return sum(turn.content.map(blockTokens));
  return sum(turn.blocks.map(blockTokens)) + resultTokens(turn);
}

function allSince(turns: readonly Turn[], position: bigint): number {
  const kept = keptPrefix(turns);
  let tokens = 0;
  const from = kept && kept.source.through <= position ? kept.count : 0;
  for (let i = from; i < turns.length; i++) tokens += tokensSince(turns[i]!, position);
  return tokens;
}

function tokensSince(turn: Turn, position: bigint): number {
  if (turn.through <= position) return 0;
  // The answer itself was reported; its results came after it.
  return turn.kind === "assistant" && turn.position <= position ? resultTokens(turn) : turnTokens(turn);
}

function resultTokens(turn: Extract<Turn, { kind: "assistant" }>): number {
  return sum(turn.calls.map((call) => resultOf(call.result?.content ?? [])));
}

function resultOf(content: readonly ContentBlock[]): number {
  const isMedia = ({ type }: ContentBlock): boolean => type === "image" || type === "document";
  const text = sum(content.filter((block) => !isMedia(block)).map(blockTokens));
  return (
    sum(content.filter(isMedia).map(blockTokens)) + Math.min(text, LIMITS.toolOutputChars / BYTES_PER_TOKEN)
  );
}

function blockTokens(block: ContentBlock): number {
  if (block.type === "image") return IMAGE_TOKENS;
  return Math.ceil(blockSize(block) / BYTES_PER_TOKEN);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
