import assert from "node:assert/strict";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { bodiesOf } from "../../kit/check-log.ts";

const COMPLETED = 1;
const NOT_RUN = 2;

/**
 * checkEffects holds what each tool really did against what the log says of it: once when it is said to have completed,
 * not at all when it is said not to have run or was never asked for, and at most once when nobody can know. [L4]
 */
export function checkEffects(
  events: readonly Event[],
  words: readonly string[],
  effects: (word: string) => number,
): void {
  const outcomes = new Map<string, number>([
    ...bodiesOf(events, "agentToolResult").map(({ toolUseId, outcome }) => [toolUseId, outcome] as const),
    ...bodiesOf(events, "agentMcpToolResult").map(
      ({ mcpToolUseId, outcome }) => [mcpToolUseId, outcome] as const,
    ),
  ]);
  for (const word of words) {
    const asking = events.filter(({ body }) => hasWord(body, word)).map(({ id }) => id);
    const said = asking.map((id) => outcomes.get(id)).filter((outcome) => outcome !== undefined);
    const count = effects(word);
    assert.ok(said.length <= 1, `${word} was asked for ${said.length} times`);
    const [outcome] = said;
    if (outcome === COMPLETED) assert.equal(count, 1, `${word} is said to have completed`);
    else if (outcome === undefined || outcome === NOT_RUN)
      assert.equal(count, 0, `${word} is said not to have run`);
    else assert.ok(count <= 1, `${word} ran ${count} times`);
  }
}

function hasWord(body: Event["body"], word: string): boolean {
  if (body?.$case !== "agentToolUse" && body?.$case !== "agentMcpToolUse") return false;
  const input = Buffer.from(body.value.inputJson).toString("utf8");
  return input.split(/[^0-9a-z]+/).includes(word);
}
