import assert from "node:assert/strict";
import { runService } from "../../kit/start-service.ts";
import { bodies, HarnessKit } from "./harness-kit.ts";
import { streamed, text, use } from "./played-model.ts";

describe("two harness processes", function () {
  this.timeout(120_000);
  let kit: HarnessKit;

  before(async () => {
    kit = await HarnessKit.start();
    await kit.harness("harness-1");
  });
  after(() => kit.stop());

  it("hand a turn over after SIGKILL with nothing lost and no tool run twice [B001] [B152]", async () => {
    const session = await kit.newSession();
    const done = Promise.withResolvers<void>();
    kit.sandbox.commands.set("long", async () => {
      await done.promise;
      return { output: "the long thing" };
    });
    kit.model.will(
      streamed("tool_use", use("t1", "bash", { command: "long" })),
      streamed("end_turn", text("Done.")),
    );
    await session.say("Run something long.");
    await kit.sandbox.began(1);
    kit.harnesses.get("harness-1")!.process.kill("SIGKILL");
    await kit.harness("harness-2");
    done.resolve();
    const events = await session.until("session.status_idle");
    assert.deepEqual(kit.sandbox.begun, ["long"]);
    assert.equal(bodies(events, "agentToolResult").length, 1);
    assert.match(String(bodies(events, "agentToolResult")[0]?.content[0]?.data?.value), /the long thing/);
    assert.deepEqual(
      bodies(events, "ganglionLeaseAcquired").map((lease) => [lease.epoch, lease.isTakeover]),
      [
        [1n, false],
        [2n, true],
      ],
    );
  });

  it("make a model request of a dead brain again [B016]", async () => {
    await kit.harness("harness-1");
    const session = await kit.newSession();
    const asked = kit.model.seen.length;
    let owner = "";
    kit.model.will(() => {}, streamed("end_turn", text("Here.")));
    await session.say("Hello.");
    await kit.model.asked(asked + 1);
    owner = bodies(await session.until("ganglion.lease_acquired"), "ganglionLeaseAcquired")[0]!.owner;
    kit.harnesses.get(owner.split("/").at(-1)!)!.process.kill("SIGKILL");
    const events = await session.until("session.status_idle");
    assert.deepEqual(
      bodies(events, "spanModelRequestEnd").map((span) => span.errorReason),
      ["INTERRUPTED", ""],
    );
    await kit.harness(owner.split("/").at(-1)!);
  });

  it("hand a session over within a second when one is asked to stop [B149]", async () => {
    const session = await kit.newSession();
    const asked = kit.model.seen.length;
    kit.model.will(() => {}, streamed("end_turn", text("Here.")));
    await session.say("Hello.");
    await kit.model.asked(asked + 1);
    const [lease] = bodies(await session.until("ganglion.lease_acquired"), "ganglionLeaseAcquired");
    const stopping = kit.harnesses.get(lease!.owner.split("/").at(-1)!)!;
    const stoppedAt = Date.now();
    stopping.process.kill("SIGTERM");
    await kit.model.asked(asked + 2);
    const tookMs = Date.now() - stoppedAt;
    assert.ok(tookMs < 1500, `${tookMs} ms`);
    const events = await session.until("session.status_idle");
    assert.equal(bodies(events, "ganglionLeaseAcquired").at(-1)?.isTakeover, false);
    assert.equal(await stopping.exit, 0);
    await kit.harness(lease!.owner.split("/").at(-1)!);
  });

  it("go on after the one that drives was stopped in its tracks and comes back [B150]", async () => {
    const session = await kit.newSession();
    const asked = kit.model.seen.length;
    const late = Promise.withResolvers<void>();
    kit.model.will(
      async (response, request) => {
        await late.promise;
        await streamed("end_turn", text("From the one that slept."))(response, request);
      },
      streamed("end_turn", text("From the other.")),
    );
    await session.say("Hello.");
    await kit.model.asked(asked + 1);
    const [lease] = bodies(await session.until("ganglion.lease_acquired"), "ganglionLeaseAcquired");
    const sleeper = kit.harnesses.get(lease!.owner.split("/").at(-1)!)!;
    sleeper.process.kill("SIGSTOP");
    await session.until("session.status_idle");
    sleeper.process.kill("SIGCONT");
    late.resolve();
    // The sleeper is back in business: it drives something new without having written to the old.
    const events = await session.until("session.status_idle");
    assert.equal(bodies(events, "agentMessage").length, 1);
    assert.match(String(bodies(events, "agentMessage")[0]?.block?.data?.value), /the other/);
  });

  it("refuse to start with a model credential in the environment [A158]", async () => {
    const env = await kit.harnessEnv("harness-3");
    for (const name of ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"]) {
      const main = new URL("../../../services/harness/main.ts", import.meta.url);
      const { exit, output } = await runService(main, { env: { ...env, [name]: "planted" } });
      assert.equal(exit, 78);
      assert.match(output, new RegExp(name));
      assert.ok(!output.includes("planted"));
    }
  });
});
