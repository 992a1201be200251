import assert from "node:assert/strict";
import { loadLog } from "../../golden/load-log.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash, EXECUTED, modelFailure } from "./fakes/scripted-parts.ts";

/** A session whose first brain died with one call open, before anything was asked of a hand. */
async function deadWithOpenCall(command = "one"): Promise<World> {
  const world = new World(session(), answer("tool_use", bash("a", command)));
  const { run, end } = world.brain();
  world.log.beforeAppend = (events) => {
    if (events[0]?.body.$case === "ganglionHandProvisioned") {
      run.abort();
      throw new Error("the brain is dead");
    }
  };
  await end;
  world.log.beforeAppend = undefined;
  world.hands.provisioned = 0;
  assert.equal(world.log.types().at(-1), "spanModelRequestEnd");
  return world;
}

describe("taking over", () => {
  it("asks the journal and never runs again what has ended [B001] [B152]", async () => {
    const world = await deadWithOpenCall();
    const key = callId(world);
    world.hands.journal.set(key, { kind: "known", value: { ...EXECUTED, output: "ran before" } });
    world.model.steps.push(answer("end_turn", "Done."));
    await world.drive();
    assert.deepEqual(world.hands.runs, []);
    assert.match(String(world.log.all("agentToolResult")[0]?.content[0]?.data?.value), /ran before/);
  });

  it("runs what the host says was never started", async () => {
    const world = await deadWithOpenCall();
    world.model.steps.push(answer("end_turn", "Done."));
    await world.drive();
    assert.deepEqual(world.hands.runs, ["one"]);
  });

  it("says that the outcome is unknown when the host is gone, and runs nothing [B001]", async () => {
    const world = await deadWithOpenCall();
    world.hands.isReachable = false;
    world.model.steps.push(answer("end_turn", "I see."));
    await world.drive();
    assert.deepEqual(world.hands.runs, []);
    assert.deepEqual(
      world.log.all("agentToolResult").map((result) => [result.isError, result.outcome]),
      [[true, 3]],
    );
  });

  it("adds nothing when a session that is settled is woken again [B001]", async () => {
    const world = await deadWithOpenCall();
    world.model.steps.push(answer("end_turn", "Done."));
    await world.drive();
    const before = world.log.types().length;
    await world.drive();
    // The lease itself is all that was added.
    assert.equal(world.log.types().length, before + 1);
  });

  it("settles only the call without a result, and keeps the others [B002]", async () => {
    const world = new World([]);
    for (const event of loadLog("takeover-open-calls")) world.log.events.push(event);
    world.log.epoch = 2n;
    world.model.steps.push(answer("end_turn", "Done."));
    await world.drive();
    assert.deepEqual(world.hands.runs, ["two"]);
    assert.deepEqual(
      world.log.all("agentToolResult").map((result) => result.toolUseId),
      ["sevt_1", "sevt_3", "sevt_2"],
    );
    const [request] = world.model.requests as { messages: { content: { tool_use_id?: string }[] }[] }[];
    assert.deepEqual(
      request?.messages[2]?.content.map((block) => block.tool_use_id),
      ["t1", "t2", "t3", undefined],
    );
  });

  it("ends a request that a dead brain left open and makes it again [B016]", async () => {
    const world = new World([]);
    for (const event of loadLog("takeover-open-span")) world.log.events.push(event);
    world.log.epoch = 2n;
    world.model.steps.push(answer("end_turn", "Here."));
    await world.drive();
    const [first, second] = world.log.all("spanModelRequestEnd");
    assert.deepEqual([first?.isError, first?.errorReason, second?.isError], [true, "INTERRUPTED", false]);
    assert.equal(world.log.all("agentToolResult").length, 0);
    const [request] = world.model.requests as { messages: unknown[] }[];
    assert.equal(request?.messages.length, 1);
  });

  it("writes nothing more once its epoch is stale, and the new brain finishes the turn [B150]", async () => {
    const stuck = Promise.withResolvers<void>();
    const world = new World(
      session(),
      async () => {
        await stuck.promise;
        return answer("end_turn", "From the old brain.");
      },
      answer("end_turn", "From the new brain."),
    );
    const old = world.brain();
    await world.log.until(() => world.log.types().includes("spanModelRequestStart"));
    const fresh = world.brain();
    assert.equal((await fresh.end).reason, "settled");
    stuck.resolve();
    assert.equal((await old.end).reason, "lost");
    assert.equal(world.log.all("agentMessage").length, 1);
    assert.match(String(world.log.all("agentMessage")[0]?.block?.data?.value), /new brain/);
  });
});

describe("giving a session away", () => {
  it("leaves what runs to the next brain, which attaches to it and runs nothing twice", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "long")), answer("end_turn", "Done."));
    const begun = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    world.hands.commands.set("long", async () => {
      begun.resolve();
      await done.promise;
      return { output: "finished" };
    });
    const first = world.brain();
    await begun.promise;
    first.run.stop();
    assert.equal((await first.end).reason, "stopped");
    const second = world.brain();
    done.resolve();
    assert.equal((await second.end).reason, "settled");
    assert.deepEqual(world.hands.runs, ["long"]);
    assert.deepEqual(world.hands.cancelled, []);
    assert.match(String(world.log.all("agentToolResult")[0]?.content[0]?.data?.value), /finished/);
  });

  it("ends a model request at once and lets the next brain make it again", async () => {
    const world = new World(
      session(),
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(modelFailure("INTERRUPTED", false)));
        }),
      answer("end_turn", "Hi."),
    );
    const first = world.brain();
    await world.log.until(() => world.log.types().includes("spanModelRequestStart"));
    first.run.stop();
    assert.equal((await first.end).reason, "stopped");
    await world.drive();
    assert.equal(world.log.all("agentMessage").length, 1);
  });
});

describe("interrupting", () => {
  it("stops a running tool, closes its call and goes idle without asking the model [B007]", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "hang"), bash("b", "quick")));
    world.hands.commands.set("hang", () => {
      world.log.client("user.interrupt", {});
      return new Promise(() => {});
    });
    await world.drive();
    assert.equal(world.hands.cancelled.length, 2);
    assert.equal(world.model.requests.length, 1);
    assert.equal(world.log.all("agentToolResult").length, 2);
    assert.equal(world.log.all("agentToolResult")[0]?.outcome, 4);
    assert.equal(world.log.all("sessionStatusIdle")[0]?.stopReason?.type, 1);
  });

  it("keeps a result that comes after its call was closed, as information only [B005]", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "slow")), answer("end_turn", "Go on."));
    const late = Promise.withResolvers<void>();
    world.hands.commands.set("slow", async () => {
      world.log.client("user.interrupt", {});
      // From here on the host is silent, and answers much later.
      world.hands.isReachable = false;
      await late.promise;
      return { output: "the late one" };
    });
    const { run, end } = world.brain(60_000);
    await world.log.until(() => world.log.types().includes("sessionStatusIdle"));
    assert.equal(world.log.all("agentToolResult")[0]?.outcome, 3);
    late.resolve();
    await world.log.until(() => world.log.types().includes("ganglionLateToolResult"));
    world.log.client("user.message", { content: [{ type: "text", text: "And now?" }] });
    await world.log.until(() => world.log.all("sessionStatusIdle").length === 2);
    run.stop();
    await end;
    assert.ok(!JSON.stringify(world.model.requests).includes("the late one"));
    assert.equal(world.log.all("agentToolResult").length, 1);
  });

  it("stops a model request, keeps nothing of it, and starts what was queued next", async () => {
    const world = new World(
      session(),
      (signal) => {
        world.log.client("user.message", { content: [{ type: "text", text: "Something else." }] });
        world.log.client("user.interrupt", {});
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(modelFailure("INTERRUPTED", false)));
        });
      },
      answer("end_turn", "Else."),
    );
    await world.drive();
    assert.equal(world.log.all("spanModelRequestEnd")[0]?.errorReason, "INTERRUPTED");
    assert.equal(world.log.all("agentMessage").length, 1);
    assert.equal(world.log.all("sessionStatusIdle").length, 2);
  });

  it("closes a call of a dead brain by what the journal knows", async () => {
    const world = await deadWithOpenCall();
    world.hands.journal.set(callId(world), { kind: "known", value: { ...EXECUTED, output: "had ended" } });
    world.log.client("user.interrupt", {});
    await world.drive();
    assert.match(String(world.log.all("agentToolResult")[0]?.content[0]?.data?.value), /had ended/);
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
    assert.equal(world.model.requests.length, 1);
  });

  it("does not run a call whose hand comes only after the interrupt", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "one")));
    const provision = world.hands.provision.bind(world.hands);
    world.hands.provision = async () => {
      world.log.client("user.interrupt", {});
      // The watch brings it first.
      await new Promise((resolve) => setImmediate(resolve));
      return provision();
    };
    await world.drive();
    assert.deepEqual(world.hands.runs, []);
    assert.deepEqual(
      world.log.all("agentToolResult").map(({ outcome }) => outcome),
      [2],
    );
  });
});

function callId(world: World): string {
  const event = world.log.events.find(({ body }) => body?.$case === "agentToolUse");
  assert.ok(event);
  return event.id;
}
