import assert from "node:assert/strict";
import type { WrittenEvent } from "../../golden/load-log.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash, modelFailure, using } from "./fakes/scripted-parts.ts";

// $3, $15, $0.30, $3.75 and $6 for a million tokens.
const PRICE = {
  inputMicrocents: "300",
  outputMicrocents: "1500",
  cacheReadMicrocents: "30",
  cacheWrite5mMicrocents: "375",
  cacheWrite1hMicrocents: "600",
};

function priced(cents: number | null, agent: Record<string, unknown> = {}): WrittenEvent[] {
  const [created, ...rest] = session(agent);
  const budget = cents === null ? {} : { budget: { maxListCostCents: String(cents) } };
  return [{ ...created!, body: { ...created!.body, price: PRICE, ...budget } }, ...rest];
}

const stops = (world: World) => world.log.all("sessionStatusIdle").map((idle) => idle.stopReason?.type);
const cost = (world: World) => world.log.all("sessionUsage").at(-1)?.listCostMicrocents;
// 10,000 output tokens are 15 cents.
const dear = { outputTokens: 10_000n };
const ASKS = {
  tools: [{ type: "agent_toolset_20260401", default_config: { permission_policy: { type: "always_ask" } } }],
};

describe("what a session costs", () => {
  it("is counted exactly, cache writes by their time", async () => {
    const world = new World(
      priced(null),
      using(answer("end_turn", "Hi."), {
        inputTokens: 7n,
        outputTokens: 11n,
        cacheReadInputTokens: 13n,
        cacheCreationInputTokens: 100n,
        cacheCreation5mInputTokens: 60n,
        cacheCreation1hInputTokens: 30n,
      }),
    );
    await world.drive();
    // Ten written tokens have no time of their own.
    assert.equal(cost(world), 7n * 300n + 11n * 1500n + 13n * 30n + 70n * 375n + 30n * 600n);
  });

  it("stays exact beyond what a double holds", async () => {
    const world = new World(
      priced(null),
      using(answer("end_turn", "Hi."), { inputTokens: 9_007_199_254_740_993n }),
    );
    await world.drive();
    assert.equal(cost(world), 9_007_199_254_740_993n * 300n);
  });

  it("is not told where the price is not known", async () => {
    const world = new World(session(), using(answer("end_turn", "Hi."), dear));
    await world.drive();
    assert.equal(cost(world), undefined);
    assert.deepEqual(stops(world), [1]);
  });
});

describe("a budget", () => {
  it("pauses between two requests, usage before idle, and goes on where it was when it is raised", async () => {
    const world = new World(
      priced(10),
      using(answer("tool_use", bash("a", "one")), dear),
      answer("end_turn", "Done."),
    );
    await world.drive();
    assert.deepEqual(world.hands.runs, ["one"]);
    assert.deepEqual(world.log.types().slice(-3), ["agentToolResult", "sessionUsage", "sessionStatusIdle"]);
    assert.deepEqual(stops(world), [4]);
    assert.equal(cost(world), 15_000_000n);
    assert.equal(world.model.requests.length, 1);

    world.log.client("session.updated", { budget: { maxListCostCents: "100" } });
    await world.drive();
    assert.deepEqual(stops(world), [4, 1]);
    const [, second] = world.model.requests as { messages: unknown[] }[];
    assert.equal(second?.messages.length, 3);
  });

  it("goes on when it is removed, and says anew that it is paused when it is raised to less than was spent", async () => {
    const world = new World(
      priced(10),
      using(answer("tool_use", bash("a", "one")), dear),
      answer("end_turn", "Done."),
    );
    await world.drive();
    world.log.client("session.updated", { budget: { maxListCostCents: "12" } });
    await world.drive();
    assert.deepEqual(stops(world), [4, 4]);
    world.log.client("session.updated", { isBudgetRemoved: true });
    await world.drive();
    assert.deepEqual(stops(world), [4, 4, 1]);
  });

  it("adds nothing to a paused session, however often it is woken", async () => {
    const world = new World(priced(10), using(answer("tool_use", bash("a", "one")), dear));
    await world.drive();
    const before = world.log.types().length;
    for (let i = 0; i < 15; i++) await world.drive();
    assert.equal(world.log.types().length, before + 15);
    world.model.steps.push(answer("end_turn", "Done."));
    world.log.client("session.updated", { isBudgetRemoved: true });
    await world.drive();
    assert.deepEqual(stops(world), [4, 1]);
  });

  it("does not keep a turn from ending that ended with the request that used it up", async () => {
    const world = new World(priced(10), using(answer("end_turn", "Done."), dear));
    await world.drive();
    assert.deepEqual(stops(world), [1]);
    world.log.client("user.message", { content: [{ type: "text", text: "More." }] });
    await world.drive();
    assert.deepEqual(stops(world), [1, 4]);
    assert.deepEqual(world.log.types().slice(-3), [
      "sessionStatusRunning",
      "sessionUsage",
      "sessionStatusIdle",
    ]);
    assert.equal(world.model.requests.length, 1);
  });

  it("leaves calls to be confirmed, and pauses after they have run", async () => {
    const world = new World(priced(10, ASKS), using(answer("tool_use", bash("a", "one")), dear));
    await world.drive();
    assert.deepEqual(stops(world), [2]);
    const id = world.log.events.find(({ body }) => body?.$case === "agentToolUse")?.id;
    world.log.client("user.tool_confirmation", { toolUseId: id, result: "RESULT_ALLOW" });
    await world.drive();
    assert.deepEqual(world.hands.runs, ["one"]);
    assert.deepEqual(stops(world), [2, 4]);
  });

  it("counts requests that failed but were paid for", async () => {
    const failed = modelFailure("MODEL_FAILED", true, 1);
    const { usage } = using(answer("end_turn"), dear);
    const world = new World(priced(10), Object.assign(failed, { facts: { ...failed.facts, usage } }));
    await world.drive();
    assert.deepEqual(stops(world), [4]);
  });

  it("ignores an interrupt while it is paused", async () => {
    const world = new World(priced(10), using(answer("tool_use", bash("a", "one")), dear));
    await world.drive();
    world.log.client("user.interrupt", {});
    const before = world.log.types().length;
    await world.drive();
    assert.equal(world.log.types().length, before + 1);
  });
});
