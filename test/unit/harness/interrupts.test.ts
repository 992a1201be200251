import assert from "node:assert/strict";
import { session, World, withBooks } from "./fakes/brain.ts";
import { answer, bash, modelFailure } from "./fakes/scripted-parts.ts";

const PATIENT = { callMs: 600_000, retryMs: 250, interruptMs: 1000, evaluatorMs: 600_000 };
const FIND = { id: "a", name: "mcp__books__find", input: {} };
const never = (): Promise<never> => new Promise(() => {});

/** A session whose brain died right after it had written down one call. */
async function dead(world: World): Promise<World> {
  const { run, end } = world.brain();
  await world.log.until(() => world.log.types().some((type) => type.endsWith("ToolUse")));
  run.abort();
  await end;
  return world;
}

/** Each makes one part hang for ever, whatever its signal says; `isHanging` resolves once somebody waits for it. */
const hanging: [string, (hangs: () => void) => World | Promise<World>][] = [
  [
    "the model",
    (hangs) =>
      new World(session(), (signal) => {
        hangs();
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(modelFailure("INTERRUPTED", false)));
        });
      }),
  ],
  [
    "the wait that a provider asked for [B020]",
    (hangs) => {
      const world = new World(session(), modelFailure("MODEL_OVERLOADED", true, 171_000));
      void world.log.until(() => world.log.types().includes("sessionStatusRescheduled")).then(hangs);
      return world;
    },
  ],
  [
    "the making of a hand",
    (hangs) => {
      const world = new World(session(), answer("tool_use", bash("a", "one")));
      world.hands.provision = () => {
        hangs();
        return never();
      };
      return world;
    },
  ],
  [
    "a command that cannot even be cancelled [B007]",
    (hangs) => {
      const world = new World(session(), answer("tool_use", bash("a", "one"), bash("b", "two")));
      world.hands.execute = () => {
        hangs();
        return never();
      };
      world.hands.cancel = never;
      world.hands.lookUp = never;
      return world;
    },
  ],
  [
    "a call to an MCP server, and the proxy with it",
    (hangs) => {
      const world = withBooks(answer("tool_use", FIND));
      world.mcp.call = () => {
        hangs();
        return never();
      };
      world.mcp.cancel = never;
      world.mcp.lookUp = never;
      return world;
    },
  ],
  [
    "the list of tools",
    (hangs) => {
      const world = withBooks();
      world.mcp.listTools = never;
      void world.log.until(() => world.log.types().includes("sessionStatusRunning")).then(hangs);
      return world;
    },
  ],
  [
    "a request for a summary [B028]",
    (hangs) => {
      const tight = { window_tokens: 4000, compact_at_tokens: 1000, keep_tokens: 200 };
      const world = new World(
        session({}, "Find the word.", "compaction/1", tight),
        answer("tool_use", bash("a", "first")),
        (signal) => {
          hangs();
          return new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(modelFailure("INTERRUPTED", false)));
          });
        },
      );
      world.hands.commands.set("first", async () => ({ output: "x".repeat(8000) }));
      return world;
    },
  ],
  [
    "a look into the session's own log",
    (hangs) => {
      const asked = answer("tool_use", { id: "l", name: "session_log", input: {} });
      const world = new World(session({}, "Hello.", "compaction/1"), asked);
      world.log.slice = () => {
        hangs();
        return never();
      };
      return world;
    },
  ],
  [
    "the session token",
    (hangs) => {
      const world = new World(session());
      world.tokens = { issue: never };
      void world.log.until(() => world.log.types().includes("spanModelRequestStart")).then(hangs);
      return world;
    },
  ],
  [
    "the look for what a dead brain's hand did",
    async (hangs) => {
      const world = await dead(new World(session(), answer("tool_use", bash("a", "one"))));
      world.hands.lookUp = () => {
        hangs();
        return never();
      };
      world.hands.cancel = never;
      return world;
    },
  ],
  [
    "the look for what a dead brain's proxy did",
    async (hangs) => {
      const world = await dead(withBooks(answer("tool_use", FIND)));
      world.mcp.lookUp = () => {
        hangs();
        return never();
      };
      world.mcp.cancel = never;
      return world;
    },
  ],
];

describe("an interrupt", () => {
  for (const [what, make] of hanging) {
    it(`is honoured within two seconds while this hangs: ${what}`, async () => {
      const hangs = Promise.withResolvers<void>();
      const world = await make(hangs.resolve);
      const { end } = world.brain(0, PATIENT);
      await hangs.promise;
      const idles = world.log.all("sessionStatusIdle").length;
      const startedAt = performance.now();
      world.log.client("user.interrupt", {});
      await world.log.until(() => world.log.all("sessionStatusIdle").length > idles);
      const tookMs = performance.now() - startedAt;
      assert.ok(tookMs < 2000, `took ${tookMs} ms`);
      assert.equal((await end).reason, "settled");
      assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
      const calls = world.log.types().filter((type) => type.endsWith("ToolUse")).length;
      const results = world.log.types().filter((type) => type.endsWith("ToolResult")).length;
      assert.equal(results, calls, "each call has one result");
      assert.equal(world.log.all("sessionStatusIdle").length, idles + 1);
      assert.equal(world.log.types().at(-1), "sessionStatusIdle");
    });
  }

  it("of a turn that hangs leaves the session usable", async () => {
    const hangs = Promise.withResolvers<void>();
    const world = new World(session(), answer("tool_use", bash("a", "one")), answer("end_turn", "Better."));
    const provision = world.hands.provision.bind(world.hands);
    world.hands.provision = () => {
      hangs.resolve();
      return never();
    };
    const { end } = world.brain(0, PATIENT);
    await hangs.promise;
    world.hands.provision = provision;
    world.log.client("user.interrupt", {});
    world.log.client("user.message", { content: [{ type: "text", text: "Again." }] });
    await end;
    assert.deepEqual(
      world.log.all("sessionStatusIdle").map((idle) => idle.stopReason?.type),
      [1, 1],
    );
    assert.equal(world.log.all("agentMessage").length, 1);
  });
});

describe("an interrupt that a client's answer overtakes", () => {
  it("leaves the answered call its one result [B005] [L4]", async () => {
    const tools = [
      { type: "agent_toolset_20260401" },
      { type: "custom", name: "book", description: "d", input_schema: { type: "object" } },
    ];
    const calls = [bash("a", "one"), { id: "b", name: "book", input: {} }];
    const world = new World(session({ tools }), answer("tool_use", ...calls));
    const hangs = Promise.withResolvers<void>();
    world.hands.commands.set("one", () => {
      hangs.resolve();
      return never();
    });
    // Answered while the hand is asked to stop, and seen before the interrupt is written down.
    world.hands.cancel = async () => {
      const customToolUseId = world.log.events.find(({ body }) => body?.$case === "agentCustomToolUse")?.id;
      world.log.client("user.custom_tool_result", { customToolUseId, content: [] });
      await world.log.until(() => world.log.watched === world.log.head);
    };
    const { end } = world.brain(0, PATIENT);
    await hangs.promise;
    world.log.client("user.interrupt", {});
    assert.equal((await end).reason, "settled");
    const closed = world.log.all("agentToolResult").map(({ toolUseId }) => toolUseId);
    assert.deepEqual(closed, [world.log.events.find(({ body }) => body?.$case === "agentToolUse")?.id]);
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });
});

describe("a turn that cannot go on", () => {
  it("leaves what comes after it failed to a turn of its own", async () => {
    const world = new World(
      session(),
      modelFailure("MODEL_UNAUTHORIZED", false),
      answer("end_turn", "Hello."),
    );
    world.log.beforeAppend = (events) => {
      if (events[0]?.body.$case !== "spanModelRequestEnd") return;
      world.log.beforeAppend = undefined;
      world.log.client("user.message", { content: [{ type: "text", text: "Just now." }] });
    };
    await world.drive();
    assert.deepEqual(
      world.log.all("sessionStatusIdle").map((idle) => idle.stopReason?.type),
      [3, 1],
    );
  });

  it("flushes input that was there when the attempts were used up", async () => {
    const failing = Promise.withResolvers<void>();
    const world = new World(session(), async () => {
      world.log.client("user.message", { content: [{ type: "text", text: "Queued." }] });
      await failing.promise;
      throw modelFailure("MODEL_UNAUTHORIZED", false);
    });
    const { end } = world.brain();
    await world.log.until(() => world.log.all("userMessage").length === 2);
    // The watch has brought it once the brain has been round the loop.
    await new Promise((resolve) => setImmediate(resolve));
    failing.resolve();
    await end;
    assert.deepEqual(
      world.log.all("sessionStatusIdle").map((idle) => idle.stopReason?.type),
      [3],
    );
    assert.equal(world.model.requests.length, 1);
    // Nothing is left to do, and nobody is woken for it again.
    const before = world.log.types().length;
    await world.drive();
    assert.equal(world.log.types().length, before + 1);
    world.model.steps.push(answer("end_turn", "Both."));
    world.log.client("user.message", { content: [{ type: "text", text: "Next." }] });
    await world.drive();
    const [, request] = world.model.requests as { messages: { content: unknown[] }[] }[];
    assert.equal(request?.messages[0]?.content.length, 3);
  });
});
