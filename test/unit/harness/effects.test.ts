import assert from "node:assert/strict";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

const BOOKS = {
  tools: [
    {
      type: "mcp_toolset",
      mcp_server_name: "books",
      default_config: { permission_policy: { type: "always_allow" } },
    },
  ],
  mcp_servers: [{ name: "books", type: "url", url: "https://books.example" }],
};

/** A session whose brain died right after it had written down one call of an MCP tool. */
async function deadInMcpCall(): Promise<{ world: World; key: string }> {
  const world = new World(
    session(BOOKS),
    answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }),
  );
  const tool = { name: "find", description: "", inputSchemaJson: Buffer.from("{}") };
  world.mcp.tools.set("books", [{ ...tool, annotationsJson: Buffer.alloc(0) }]);
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
