import assert from "node:assert/strict";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { bodiesOf } from "../../kit/check-log.ts";

const COMPLETED = 1;
const NOT_RUN = 2;

/**
 * checkEffects holds what each tool really did against what the log says of it: once for each call that is said to have
 * completed, not at all for one that is said not to have run, and at most once for one of which nobody can know. [L4]
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
    // A model that is told that nobody knows, or that it did not run, may ask once more; of what is done it has the answer.
    const isDone = said.slice(0, -1).includes(COMPLETED);
    assert.ok(!isDone, `${word} was asked for ${said.length} times`);
    const sure = said.filter((outcome) => outcome === COMPLETED).length;
    const possible = said.filter((outcome) => outcome !== NOT_RUN).length;
    assert.ok(
      count >= sure && count <= possible,
      `${word} ran ${count} times: ${sure} by the log, ${possible} at most`,
    );
  }
}

function hasWord(body: Event["body"], word: string): boolean {
  if (body?.$case !== "agentToolUse" && body?.$case !== "agentMcpToolUse") return false;
  const input = Buffer.from(body.value.inputJson).toString("utf8");
  return input.split(/[^0-9a-z]+/).includes(word);
}
