import assert from "node:assert/strict";
import { pino } from "pino";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import type { Answer } from "../../../services/harness/ports/model.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

function using(of: Answer, read: bigint, written: bigint, uncached: bigint): Answer {
  const usage = {
    ...emptyState().usage,
    cacheReadInputTokens: read,
    cacheCreationInputTokens: written,
    inputTokens: uncached,
    speed: "",
  };
  return { ...of, usage };
}

function logging(world: World): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  world.logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return lines;
}

describe("the cache-hit share of a run", () => {
  it("is what came out of the cache over all input tokens, counted by their source and logged at the end", async () => {
    const world = new World(
      session(),
      using(answer("tool_use", bash("a", "one")), 0n, 900n, 100n),
      using(answer("end_turn", "Done."), 900n, 50n, 50n),
    );
    const lines = logging(world);
    await world.drive();
    assert.deepEqual(world.counted, { cache_read: 900, cache_write: 950, uncached: 150 });
    assert.deepEqual(
      lines.flatMap((line) => (line.cache_hit_share === undefined ? [] : [line.cache_hit_share])),
      [0.45],
    );
  });

  it("is not logged for a run that asked nothing", async () => {
    const world = new World(session(), answer("end_turn", "Hi."));
    await world.drive();
    const lines = logging(world);
    await world.drive();
    assert.deepEqual(
      lines.filter((line) => "cache_hit_share" in line),
      [],
    );
  });
});
