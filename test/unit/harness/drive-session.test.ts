import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { sha256 } from "../../../services/harness/domain/sha256.ts";
import { LeaseLost } from "../../../services/harness/driver/lease-lost.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash, modelFailure } from "./fakes/scripted-parts.ts";

describe("driving a session", () => {
  it("goes on as soon as its watch brings what it appended, however late the answer is [L1]", async () => {
    const world = new World(session(), answer("end_turn", "Done."));
    const append = world.log.append.bind(world.log);
    world.log.append = async (...given) => {
      await append(...given);
      return new Promise<never>(() => {});
    };
    assert.equal((await world.drive()).reason, "settled");
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });

  it("runs a plain turn in the order of the protocol and ends with idle", async () => {
    const world = new World(session(), answer("end_turn", "Hi."));
    assert.equal((await world.drive()).reason, "settled");
    assert.deepEqual(world.log.types().slice(3), [
      "sessionStatusRunning",
      "ganglionContextStrategySet",
      "spanModelRequestStart",
      "agentMessage",
      "spanModelRequestEnd",
      "sessionUsage",
      "sessionStatusIdle",
    ]);
  });

  it("begins a turn with one append: status, strategy and span together", async () => {
    const world = new World(session(), answer("end_turn", "Hi."));
    const appends: number[] = [];
    world.log.beforeAppend = (events) => appends.push(events.length);
    await world.drive();
    assert.deepEqual(appends, [3, 2, 2]);
  });

  it("writes a step's last result and the request that follows in one append", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "x")), answer("end_turn", "Done."));
    const appends: string[][] = [];
    world.log.beforeAppend = (events) => appends.push(events.map(({ body }) => body.$case));
    await world.drive();
    assert.deepEqual(appends[3], ["agentToolResult", "spanModelRequestStart"]);
    const [result, span] = world.log.events.filter(
      ({ body }, i) =>
        body?.$case === "agentToolResult" || (body?.$case === "spanModelRequestStart" && i > 7),
    );
    assert.ok(result && span?.body?.$case === "spanModelRequestStart");
    // The request is the one that the log projects to at the position that it names.
    assert.equal(span.body.value.consumedPosition, result.position);
    const state = world.log.events.slice(0, Number(result.position)).reduce(fold, emptyState());
    assert.deepEqual(Buffer.from(span.body.value.requestSha256), sha256(projectRequest(state)));
    assert.equal(world.model.requests.length, 2);
  });

  it("asks nothing that does not know what came in beside a result: the result is stored, then it decides again", async () => {
    for (const [what, body, requests] of [
      ["user.message", { content: [{ type: "text", text: "And this?" }] }, 2],
      ["user.interrupt", {}, 1],
    ] as const) {
      const world = new World(session(), answer("tool_use", bash("a", "x")), answer("end_turn", "Done."));
      world.log.beforeAppend = (events) => {
        if (events.length !== 2 || events[0]?.body.$case !== "agentToolResult") return;
        world.log.beforeAppend = undefined;
        world.log.client(what, body);
      };
      await world.drive();
      assert.equal(world.log.all("agentToolResult").length, 1);
      assert.equal(world.model.requests.length, requests);
      if (requests === 2) assert.match(JSON.stringify(world.model.requests[1]), /And this\?/);
    }
  });

  it("runs parallel calls at once and writes their results in call order [B013] [B014]", async () => {
    const world = new World(
      session(),
      answer("tool_use", bash("a", "slow"), bash("b", "quick")),
      answer("end_turn", "Done."),
    );
    const quickDone = Promise.withResolvers<void>();
    world.hands.commands.set("slow", async () => {
      await quickDone.promise;
      return { output: "slow" };
    });
    world.hands.commands.set("quick", async () => {
      quickDone.resolve();
      return { output: "quick" };
    });
    await world.drive();
    const results = world.log.all("agentToolResult").map((result) => String(result.content[0]?.data?.value));
    assert.deepEqual(results, ['{"type":"text","text":"slow"}', '{"type":"text","text":"quick"}']);
    assert.equal(world.hands.provisioned, 1);
    const [, second] = world.model.requests as { messages: { role: string; content: unknown[] }[] }[];
    assert.deepEqual(
      second?.messages.map((message) => [message.role, message.content.length]),
      [
        ["user", 1],
        ["assistant", 2],
        ["user", 2],
      ],
    );
  });

  it("turns a dead hand into an error result and gives the next call a new hand", async () => {
    const world = new World(
      session(),
      answer("tool_use", bash("a", "die")),
      answer("tool_use", bash("b", "go on")),
      answer("end_turn", "Done."),
    );
    world.hands.commands.set("die", async () => ({ isError: true, isHandLost: true, outcome: 3 }));
    await world.drive();
    assert.deepEqual(
      world.log.types().filter((type) => type.startsWith("ganglionHand") || type === "agentToolResult"),
      [
        "ganglionHandProvisioned",
        "ganglionHandLost",
        "agentToolResult",
        "ganglionHandProvisioned",
        "agentToolResult",
      ],
    );
    assert.deepEqual(
      world.log.all("agentToolResult").map((result) => [result.isError, result.outcome, result.handId]),
      [
        [true, 3, "hand_1"],
        [false, 1, "hand_2"],
      ],
    );
  });

  it("tells the model that a tool does not exist and runs nothing", async () => {
    const world = new World(
      session(),
      answer("tool_use", { id: "a", name: "web_search", input: { query: "x" } }),
      answer("end_turn", "Sorry."),
    );
    await world.drive();
    assert.equal(world.hands.runs.length, 0);
    const [result] = world.log.all("agentToolResult");
    assert.deepEqual([result?.isError, result?.outcome], [true, 2]);
  });

  it("does not run a call that was cut at the token limit, tells the model, and raises the limit [B025] [M20]", async () => {
    const cut = answer("max_tokens", bash("a", "rm -rf /half"));
    const world = new World(session(), cut, answer("end_turn", "Shorter."));
    await world.drive();
    assert.equal(world.hands.runs.length, 0);
    assert.match(
      String(world.log.all("agentToolResult")[0]?.content[0]?.data?.value),
      /cut at the token limit/,
    );
    assert.deepEqual(
      world.model.requests.map((request) => request.max_tokens),
      [16_384, 32_768],
    );
  });

  it("gives up after a bounded number of cut answers [B025]", async () => {
    const world = new World(
      session(),
      ...Array.from({ length: 9 }, () => answer("max_tokens", bash("a", "x"))),
    );
    await world.drive();
    assert.equal(world.model.requests.length, 4);
    assert.equal(world.log.all("sessionError")[0]?.reason, "MODEL_ANSWER_TRUNCATED");
    assert.equal(world.log.all("sessionStatusIdle")[0]?.stopReason?.type, 3);
  });

  for (const [stopReason, stop, reason] of [
    ["refusal", 5, undefined],
    ["max_tokens", 3, "MODEL_ANSWER_TRUNCATED"],
    ["model_context_window_exceeded", 3, "MODEL_CONTEXT_EXCEEDED"],
    ["brand_new", 3, "MODEL_STOP_UNKNOWN"],
  ] as const) {
    it(`ends a turn that stopped with ${stopReason} as what it is [B027] [M23]`, async () => {
      const world = new World(session({}, "Hello.", "full/1"), answer(stopReason, "Half a sen"));
      await world.drive();
      assert.equal(world.log.all("spanModelRequestEnd")[0]?.providerStopReason, stopReason);
      assert.equal(world.log.all("sessionStatusIdle")[0]?.stopReason?.type, stop);
      assert.equal(world.log.all("sessionError")[0]?.reason, reason);
    });
  }

  it("sends a paused turn again as it is [B027]", async () => {
    const world = new World(session(), answer("pause_turn", "Wait"), answer("end_turn", "Done."));
    await world.drive();
    const [, second] = world.model.requests as { messages: { role: string }[] }[];
    assert.deepEqual(
      second?.messages.map((message) => message.role),
      ["user", "assistant"],
    );
  });

  it("retries by itself, shows that it waits, and keeps one answer [B018] [B019]", async () => {
    const world = new World(session(), modelFailure("MODEL_OVERLOADED", true), answer("end_turn", "Hi."));
    await world.drive();
    assert.deepEqual(world.log.types().slice(3, 13), [
      "sessionStatusRunning",
      "ganglionContextStrategySet",
      "spanModelRequestStart",
      "spanModelRequestEnd",
      "ganglionModelRetryScheduled",
      "sessionError",
      "sessionStatusRescheduled",
      "sessionStatusRunning",
      "spanModelRequestStart",
      "agentMessage",
    ]);
    assert.equal(world.log.all("sessionError")[0]?.retryStatus, 1);
    assert.equal(world.log.all("agentMessage").length, 1);
  });

  it("ends with the reason of its own when a retry cannot help [B023]", async () => {
    const world = new World(session(), modelFailure("MODEL_UNAUTHORIZED", false));
    await world.drive();
    const [error] = world.log.all("sessionError");
    assert.deepEqual([error?.reason, error?.retryStatus], ["MODEL_UNAUTHORIZED", 2]);
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });

  it("does not ask again for an answer that the log will never take", async () => {
    const world = new World(session(), answer("end_turn", "x".repeat(100)));
    world.log.beforeAppend = (events) => {
      if (events[0]?.body.$case !== "agentMessage") return;
      throw new GanglionError({ code: "RESOURCE_EXHAUSTED", reason: "TOO_LARGE", message: "too large" });
    };
    await world.drive();
    assert.equal(world.model.requests.length, 1);
    assert.equal(world.log.all("sessionError")[0]?.reason, "TOO_LARGE");
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });

  it("takes input that comes just before the idle along instead of leaving it behind", async () => {
    const world = new World(session(), answer("end_turn", "Hi."), answer("end_turn", "Again."));
    world.log.beforeAppend = (events) => {
      if (events.at(-1)?.body.$case !== "sessionStatusIdle") return;
      world.log.beforeAppend = undefined;
      world.log.client("user.message", { content: [{ type: "text", text: "One more thing." }] });
    };
    await world.drive();
    assert.equal(world.model.requests.length, 2);
    assert.equal(world.log.all("sessionStatusIdle").length, 1);
  });

  it("waits for the client's answer to a custom call and goes on with it", async () => {
    const tools = [{ type: "custom", name: "book", description: "d", input_schema: { type: "object" } }];
    const world = new World(
      session({ tools }),
      answer("tool_use", { id: "a", name: "book", input: {} }),
      answer("end_turn", "Booked."),
    );
    await world.drive();
    const idle = world.log.all("sessionStatusIdle")[0]?.stopReason;
    assert.equal(idle?.type, 2);
    world.log.client("user.custom_tool_result", {
      customToolUseId: idle?.eventIds[0],
      content: [{ type: "text", text: "ok" }],
    });
    await world.drive();
    assert.equal(world.log.all("sessionStatusIdle")[1]?.stopReason?.type, 1);
  });

  it("asks before it runs what always asks, and runs it once however often it is allowed", async () => {
    const tools = [
      { type: "agent_toolset_20260401", default_config: { permission_policy: { type: "always_ask" } } },
    ];
    const world = new World(
      session({ tools }),
      answer("tool_use", bash("a", "one"), bash("b", "two")),
      answer("end_turn", "Done."),
    );
    await world.drive();
    assert.deepEqual(world.hands.runs, []);
    const [a, b] = world.log.all("sessionStatusIdle")[0]?.stopReason?.eventIds ?? [];
    world.log.client("user.tool_confirmation", { toolUseId: a, result: "RESULT_ALLOW" });
    await world.drive();
    assert.deepEqual(world.log.all("sessionStatusIdle")[1]?.stopReason?.eventIds, [b]);
    world.log.client("user.tool_confirmation", { toolUseId: a, result: "RESULT_DENY" });
    world.log.client("user.tool_confirmation", { toolUseId: b, result: "RESULT_DENY", denyMessage: "never" });
    await world.drive();
    assert.deepEqual(world.hands.runs, ["one"]);
    const texts = world.log.all("agentToolResult").map((result) => String(result.content[0]?.data?.value));
    assert.equal(texts.filter((text) => text.includes("never")).length, 1);
  });

  it("stops asking for calls once its run is over, whatever they answer [B149]", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "slow")));
    let asked = 0;
    world.hands.execute = ({ signal }) => {
      asked += 1;
      // A driver that goes on never lets anybody else run again; this is the one thing that ends it.
      if (asked > 50) return Promise.reject(new LeaseLost("enough"));
      if (asked === 1) world.log.lease();
      return new Promise((_, reject) => {
        const letGo = (): void => reject(new Error("let go"));
        if (signal.aborted) letGo();
        else signal.addEventListener("abort", letGo);
      });
    };
    const { end } = world.brain(60_000);
    assert.equal((await end).reason, "lost");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(asked, 1);
  });
});
