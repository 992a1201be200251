import assert from "node:assert/strict";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { BOOKS, session, World } from "./fakes/brain.ts";
import { CRASH_STATES, call, known, type Row } from "./fakes/crash-states.ts";
import { answer } from "./fakes/scripted-parts.ts";
import { hand } from "./fakes/written-events.ts";

const AGENT = {
  ...BOOKS,
  tools: [
    ...[{ type: "agent_toolset_20260401" }, ...BOOKS.tools],
    { type: "custom", name: "ask_boss", description: "d", input_schema: { type: "object" } },
  ],
};

function worldOf(row: Row): World {
  const left = row.left.map((event, i) => ({ ...event, id: event.id ?? `sevt_left_${i}` }));
  const world = new World([...session(AGENT), ...left]);
  world.log.epoch = 1n;
  world.mcp.tools.set("books", []);
  row.knows?.(world);
  // More than any row needs; what was asked is counted.
  for (let i = 0; i < 3; i++) world.model.steps.push(answer("end_turn", "Done."));
  return world;
}

const results = (world: World) =>
  world.log.events.flatMap(({ body }) =>
    body?.$case === "agentToolResult"
      ? [{ key: body.value.toolUseId, outcome: body.value.outcome }]
      : body?.$case === "agentMcpToolResult"
        ? [{ key: body.value.mcpToolUseId, outcome: body.value.outcome }]
        : [],
  );

describe("what a crash can leave", () => {
  for (const [what, row] of Object.entries(CRASH_STATES)) {
    it(`${what}: the next brain begins with ${row.first}, and ends well`, async () => {
      const world = worldOf(row);
      const before = world.log.events.length;
      const state = [...world.log.events].reduce(fold, emptyState());
      assert.equal(decide(state).type, row.first);

      assert.equal((await world.drive()).reason, "settled");
      const stops = world.log.all("sessionStatusIdle");
      assert.equal(stops.at(-1)?.stopReason?.type, row.stop ?? 1);
      assert.deepEqual([...world.hands.runs, ...world.mcp.calls], row.runs ?? []);
      assert.equal(world.model.requests.length, row.requests ?? 1);
      if (row.outcomes) {
        assert.deepEqual(
          results(world).map(({ outcome }) => outcome),
          row.outcomes,
        );
      }
      // Each call that anybody could see has one result that the brain wrote, and nothing was rewritten.
      const written = results(world).map(({ key }) => key);
      const fresh = world.log.events.slice(before);
      const own = fresh.flatMap(({ body }) =>
        body?.$case === "agentToolResult" || body?.$case === "agentMcpToolResult" ? [body] : [],
      );
      for (const key of written.slice(written.length - own.length)) {
        assert.equal(written.filter((other) => other === key).length, 1, `${key} has one result`);
      }
      assert.deepEqual(
        world.log.events.map(({ position }) => position),
        world.log.events.map((_, i) => BigInt(i + 1)),
      );

      // Woken again, a settled session gets nothing but the lease (B001).
      const settled = world.log.events.length;
      await world.drive();
      assert.deepEqual(
        world.log.events.slice(settled).map(({ body }) => body?.$case),
        ["ganglionLeaseAcquired"],
      );
    });
  }

  it("an interrupt that arrives while a brain recovers: the call is closed by what is known, and nothing runs", async () => {
    const world = worldOf({ left: [...call, hand], first: "run_calls" });
    const looked = Promise.withResolvers<void>();
    world.hands.lookUp = async ({ wait }) => {
      looked.resolve();
      if (wait) return { kind: "running" };
      return { kind: "known", value: { ...known, outcome: 4, isError: true } };
    };
    const { end: over } = world.brain();
    await looked.promise;
    world.log.client("user.interrupt", {});
    assert.equal((await over).reason, "settled");
    assert.deepEqual(
      results(world).map(({ outcome }) => outcome),
      [4],
    );
    assert.deepEqual(world.hands.runs, []);
    assert.equal(world.model.requests.length, 0);
  });

  it("two brains that fold the same log decide the same, at each position", () => {
    for (const row of Object.values(CRASH_STATES)) {
      const { events } = worldOf(row).log;
      const [one, other] = [emptyState(), emptyState()];
      for (const event of events) {
        assert.deepEqual(decide(fold(one, event)), decide(fold(other, event)));
      }
    }
  });
});
