import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { session, World, withBooks } from "./fakes/brain.ts";
import { answer, bash, EXECUTED } from "./fakes/scripted-parts.ts";

/** A session whose brain died right after it had written down one call of an MCP tool. */
async function deadInMcpCall(): Promise<{ world: World; key: string }> {
  const world = withBooks(answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }));
  const { run, end } = world.brain();
  await world.log.until(() => world.log.types().includes("agentMcpToolUse"));
  run.abort();
  await end;
  world.mcp.calls.length = 0;
  const key = world.log.events.find(({ body }) => body?.$case === "agentMcpToolUse")?.id ?? "";
  world.model.steps.push(answer("end_turn", "Done."));
  return { world, key };
}

const LOST = {
  outcome: 3 as const,
  content: [],
  structuredContentJson: new Uint8Array(),
  isError: true,
  proxyRequestId: "req_1",
  durationMs: undefined,
};

/** A session in which an MCP tool answers with that much text. */
function withAnswerOf(chars: number): World {
  const world = withBooks(
    answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }),
    answer("end_turn", "Done."),
  );
  const json = Buffer.from(JSON.stringify({ type: "text", text: "ü".repeat(chars) }));
  world.mcp.answer = { content: [{ type: "text", data: { $case: "json", value: json } }] };
  return world;
}

describe("a result that is larger than an event", () => {
  it("is cut in the log, and kept whole beside it [B031] [B032]", async () => {
    const world = withAnswerOf(3_000_000);
    await world.drive();
    const [result] = world.log.all("agentMcpToolResult");
    assert.deepEqual([result?.outcome, result?.isError], [1, false]);
    assert.ok(Buffer.byteLength(String(result?.content[0]?.data?.value)) < 900 * 1024);
    const stored = world.log.payloads.get(result?.fullOutput?.payloadId ?? "");
    assert.deepEqual(JSON.parse(String(stored)), [{ type: "text", text: "ü".repeat(3_000_000) }]);
    assert.equal(result?.fullOutput?.contentType, "application/json");
    assert.equal(result?.fullOutput?.excerpt, "ü".repeat(1000));
    // The model sees less still, and the session goes on.
    const [, request] = world.model.requests;
    assert.ok(JSON.stringify(request).length < 250_000);
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("is not stored twice when it fits", async () => {
    const world = withAnswerOf(100_000);
    await world.drive();
    assert.equal(world.log.all("agentMcpToolResult")[0]?.fullOutput, undefined);
    assert.equal(world.log.payloads.size, 0);
  });

  for (const [what, fail] of [
    ["cannot be stored", () => Promise.reject(new Error("no"))],
    ["is never stored", () => new Promise<never>(() => {})],
  ] as const) {
    it(`is cut, says so, and wedges nothing when the whole of it ${what}`, async () => {
      const world = withAnswerOf(3_000_000);
      world.log.writePayload = fail;
      await world.drive();
      const [result] = world.log.all("agentMcpToolResult");
      assert.equal(result?.fullOutput, undefined);
      assert.match(String(result?.content.at(-1)?.data?.value), /full output of 6000\d+ bytes is not kept/);
      assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
    });
  }

  it("does not keep an interrupt waiting while it is stored", async () => {
    const world = withAnswerOf(3_000_000);
    const storing = Promise.withResolvers<void>();
    world.log.writePayload = () => {
      storing.resolve();
      return new Promise<never>(() => {});
    };
    const { end } = world.brain(0, { callMs: 600_000, interruptMs: 1000 });
    await storing.promise;
    const key = world.log.events.find(({ body }) => body?.$case === "agentMcpToolUse")?.id ?? "";
    world.mcp.journal.set(key, { kind: "known", value: { ...LOST, ...world.mcp.answer, outcome: 1 } });
    world.log.client("user.interrupt", {});
    const startedAt = performance.now();
    await end;
    assert.ok(performance.now() - startedAt < 2000);
    const results = world.log.all("agentMcpToolResult");
    assert.deepEqual([results.length, results[0]?.outcome], [1, 1]);
  });
});

describe("effects [L4]", () => {
  it("calls again what was lost with the proxy and does no harm", async () => {
    const { world, key } = await deadInMcpCall();
    world.mcp.journal.set(key, { kind: "repeatable", value: LOST });
    await world.drive();
    assert.deepEqual(world.mcp.calls, ["find"]);
    assert.deepEqual(
      world.log.all("agentMcpToolResult").map((result) => [result.outcome, result.isError]),
      [[1, false]],
    );
  });

  it("tells the model that the outcome is unknown of everything else, and calls nothing [B152]", async () => {
    const { world, key } = await deadInMcpCall();
    world.mcp.journal.set(key, { kind: "known", value: LOST });
    await world.drive();
    assert.deepEqual(world.mcp.calls, []);
    assert.deepEqual(
      world.log.all("agentMcpToolResult").map((result) => [result.outcome, result.isError]),
      [[3, true]],
    );
  });

  it("says that the outcome is unknown of a repeatable call that an interrupt closes", async () => {
    const { world, key } = await deadInMcpCall();
    world.mcp.journal.set(key, { kind: "repeatable", value: LOST });
    world.log.client("user.interrupt", {});
    await world.drive();
    assert.deepEqual(world.mcp.calls, []);
    assert.equal(world.log.all("agentMcpToolResult")[0]?.outcome, 3);
  });

  for (const [what, knows, outcome] of [
    ["ran", { kind: "known", value: { ...LOST, isError: false, outcome: 1 } }, 1],
    ["cannot be asked about", undefined, 3],
    ["never began", { kind: "never" }, 2],
  ] as const) {
    it(`asks the journal about a call that was refused: one that ${what} [B152]`, async () => {
      // The channel may have asked before, and only that answer was lost.
      const away = new GanglionError({
        code: "UNAVAILABLE",
        reason: "DATABASE_UNAVAILABLE",
        message: "away",
      });
      const world = withBooks(
        answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }),
        answer("end_turn", "Done."),
      );
      world.mcp.onCall = () => {
        const key = world.log.events.find(({ body }) => body?.$case === "agentMcpToolUse")?.id ?? "";
        if (knows) world.mcp.journal.set(key, knows);
        throw away;
      };
      if (!knows) world.mcp.lookUp = () => Promise.reject(away);
      await world.brain(0, { callMs: 20, retryMs: 5 }).end;
      assert.deepEqual(
        world.log.all("agentMcpToolResult").map((result) => result.outcome),
        [outcome],
      );
    });
  }

  for (const [what, knows, outcome] of [
    ["ran", { kind: "known", value: { ...EXECUTED, output: "x" } }, 1],
    ["cannot be asked about", undefined, 3],
    ["runs", { kind: "running" }, 3],
    ["never began", { kind: "never" }, 2],
  ] as const) {
    it(`asks the journals about a call that a hand's host refused: one that ${what} [B152]`, async () => {
      const draining = new GanglionError({ code: "UNAVAILABLE", reason: "DRAINING", message: "goes down" });
      const world = new World(session(), answer("tool_use", bash("a", "x")), answer("end_turn", "Done."));
      world.hands.execute = async ({ key }) => {
        if (knows) world.hands.journal.set(key, knows);
        throw draining;
      };
      if (!knows) world.hands.lookUp = () => Promise.reject(draining);
      await world.brain(0, { callMs: 20, retryMs: 5 }).end;
      const [result, ...others] = world.log.all("agentToolResult");
      assert.deepEqual([result?.outcome, others.length], [outcome, 0]);
      // A host of which nobody knows what it did is not asked again.
      assert.equal(world.log.all("ganglionHandLost").length, outcome === 3 ? 1 : 0);
    });
  }

  it("tells the hand's host with the next call which results the log holds", async () => {
    const world = new World(
      session(),
      answer("tool_use", bash("a", "one"), bash("b", "two")),
      answer("tool_use", bash("c", "three")),
      answer("end_turn", "Done."),
    );
    await world.drive();
    const keys = world.log.events.flatMap(({ id, body }) => (body?.$case === "agentToolUse" ? [id] : []));
    assert.deepEqual(world.hands.acknowledged.at(-1), keys.slice(0, 2));
    // Nothing of a call that has no result yet.
    for (const known of world.hands.acknowledged.slice(0, 2)) assert.ok(!known.includes(keys[1] ?? ""));
  });
});
