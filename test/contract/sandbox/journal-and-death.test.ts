import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { HandState } from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { until } from "../../kit/until.ts";
import { HandUser, SandboxKit, untilFile, untilRunning } from "./sandbox-kit.ts";

const reason = (expected: string) => (error: unknown) => GanglionError.is(error, expected);

const STUBBORN = "trap '' TERM; setsid sleep 600 & echo x > flag; sleep 601; sleep 602";

describe("sandbox: calls, their journal, and death", function () {
  this.timeout(60_000);

  let kit: SandboxKit;

  beforeEach(async () => {
    kit = await SandboxKit.start();
  });
  afterEach(() => kit.stop());

  it("the same key runs once: attached while it runs, replayed afterwards, also after a SIGKILL [B152]", async () => {
    const hand = await kit.newHand();
    const key = newId("sevt");
    const command = "echo run >> runs; sleep 0.5; cat runs";
    const [first, second] = await Promise.all([hand.bash(command, { key }), hand.bash(command, { key })]);
    assert.equal(first.output, "run");
    assert.deepEqual({ ...second, isReplayed: false }, first);
    const third = await hand.bash(command, { key });
    assert.equal(third.isReplayed, true);
    await kit.restart();
    const fourth = await hand.bash(command, { key });
    assert.deepEqual(fourth, third);
    await assert.rejects(hand.bash("echo other", { key }), reason("KEY_REUSED"));
    const query = { sessionId: hand.sessionId, key, epoch: 1n, wait: true };
    assert.deepEqual((await kit.harness.getExecution(query)).execution, third);
  });

  it("a call under way when the service dies is UNKNOWN afterwards and is not run again [B152]", async () => {
    const hand = await kit.newHand();
    const key = newId("sevt");
    const running = hand.bash("echo started > flag; sleep 600", { key }).catch((error: unknown) => error);
    await untilFile(hand, "flag");
    await kit.restart();
    assert.ok((await running) instanceof GanglionError);
    const after = await hand.bash("echo started > flag; sleep 600", { key });
    assert.equal(after.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    assert.equal(after.isError, true);
    assert.equal(after.isHandLost, true);
    assert.match(after.output, /was started at \d{4}-/);
  });

  it("GetExecution runs nothing: never started, running, ended", async () => {
    const hand = await kit.newHand();
    const key = newId("sevt");
    const query = { sessionId: hand.sessionId, key, epoch: 1n, wait: false };
    await assert.rejects(kit.harness.getExecution(query), reason("EXECUTION_NOT_FOUND"));
    const running = hand.bash("sleep 1; echo done", { key });
    await untilRunning(hand, key);
    const waited = await kit.harness.getExecution({ ...query, wait: true });
    assert.equal(waited.isRunning, false);
    assert.equal(waited.execution!.output, "done");
    assert.equal((await running).output, "done");
  });

  it("a brain that goes away detaches, and another one attaches to the same run [B075]", async () => {
    const hand = await kit.newHand();
    const key = newId("sevt");
    const gone = new AbortController();
    const request = hand.request("bash", { command: "echo x >> runs; sleep 1; wc -l < runs" }, { key });
    const first = kit.harness.execute(request, { signal: gone.signal });
    const query = { sessionId: hand.sessionId, key, wait: false };
    await untilRunning(hand, key);
    gone.abort();
    await assert.rejects(first);
    kit.leases.set(hand.sessionId, { epoch: 2n, owner: "spiffe://ganglion.local/harness/harness-2" });
    const next = await kit.client("harness", "harness-2");
    const { execution } = await next.execute({ ...request, epoch: 2n });
    assert.equal(execution!.output, "1");
    await assert.rejects(kit.harness.getExecution({ ...query, epoch: 1n }), reason("STALE_EPOCH"));
  });

  it("an interrupt ends a command that says nothing within two seconds, with one result [B007]", async () => {
    const hand = await kit.newHand();
    const key = newId("sevt");
    const running = hand.bash(STUBBORN, { key });
    const ref = { sessionId: hand.sessionId, key, epoch: 1n };
    await untilFile(hand, "flag");
    const started = Date.now();
    await kit.harness.cancelExecution(ref);
    assert.ok(Date.now() - started < 2_000);
    const result = await running;
    assert.equal(result.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
    assert.equal(result.isError, true);
    assert.equal((await hand.bash("pgrep -c sleep")).output.split("\n")[0], "0");
    await kit.harness.cancelExecution(ref);
    await kit.harness.cancelExecution({ ...ref, key: newId("sevt") });
    assert.equal((await hand.bash(STUBBORN, { key })).isReplayed, true);
  });

  it("a stale brain executes nothing, also after a restart of the service [B150]", async () => {
    const hand = await kit.newHand();
    await hand.bash("echo 1");
    kit.leases.set(hand.sessionId, { epoch: 2n, owner: "spiffe://ganglion.local/harness/harness-2" });
    const second = await kit.client("harness", "harness-2");
    await second.execute({ ...hand.request("bash", { command: "echo 2 > two" }), epoch: 2n });
    const stale = async (error: unknown) => {
      assert.ok(GanglionError.is(error, "STALE_EPOCH"));
      assert.equal(error.code, "FAILED_PRECONDITION");
      assert.equal(error.metadata.epoch, "2");
    };
    await hand.bash("rm two").then(unexpected, stale);
    await kit.restart();
    await hand.bash("rm two").then(unexpected, stale);
    await kit.harness
      .terminate({ handId: hand.hand.id, sessionId: hand.sessionId, epoch: 1n })
      .then(unexpected, stale);
  });

  it("an epoch that the session service does not confirm is refused and locks nobody out", async () => {
    const hand = await kit.newHand();
    await assert.rejects(hand.bash("true", { epoch: 99n }), reason("STALE_EPOCH"));
    assert.equal((await hand.bash("echo fine")).output, "fine");
    const other = await kit.client("harness", "harness-9");
    await assert.rejects(other.execute(hand.request("bash", { command: "true" })), reason("STALE_EPOCH"));
    const unknown = { ...hand.request("bash", { command: "true" }), sessionId: newId("sesn") };
    await assert.rejects(kit.harness.execute(unknown), reason("STALE_EPOCH"));
  });

  it("a dead hand is a tool error at once and for ever, and another can be had [B078]", async () => {
    const hand = await kit.newHand();
    const suicide = await hand.bash("kill -9 -1; sleep 5");
    assert.equal(suicide.isHandLost, true);
    assert.equal(suicide.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    const next = await hand.bash("true");
    assert.equal(next.outcome, ToolOutcome.TOOL_OUTCOME_NOT_RUN);
    assert.equal(next.isHandLost, true);
    assert.match(next.output, /HAND_LOST/);
    const { hands } = await kit.harness.listHands({ sessionId: hand.sessionId });
    assert.deepEqual(
      hands.map((one) => one.state),
      [HandState.HAND_STATE_LOST],
    );
    const again = new HandUser(kit, hand.sessionId, await kit.hand(hand.sessionId));
    assert.equal((await again.bash("echo new; ls")).output, "new");
    const operator = await kit.client("operator", "alice");
    const shown = (await operator.listHands({ sessionId: hand.sessionId })).hands[1]!;
    // Somebody kills the jail from outside.
    process.kill(Number(shown.hostPid), "SIGKILL");
    assert.equal((await again.bash("true")).isHandLost, true);
  });

  it("a hand whose agent was stopped is given up; nobody inside can speak for it [B078]", async () => {
    const hand = await kit.newHand();
    const forged = await hand.bash("printf '\\0\\0\\0\\2{}' > /proc/$PPID/fd/1");
    assert.match(forged.output, /No such device or address/);
    const stopped = await hand.bash("kill -STOP $PPID; sleep 600", { timeoutMs: 500 });
    assert.equal(stopped.isHandLost, true);
    assert.equal(stopped.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
  });

  it("hands of a killed service are gone with it; their files go at the next start [B070]", async () => {
    const users = [await kit.newHand(), await kit.newHand(), await kit.newHand()];
    const operator = await kit.client("operator", "alice");
    const pids = (await operator.listHands({ sessionId: "" })).hands.map((hand) => Number(hand.hostPid));
    assert.equal(pids.length, 3);
    for (const user of users) await user.bash("setsid sleep 600 & echo data > file; chmod 000 .");
    const folder = join(kit.folder, "bubblewrap", "hands");
    assert.equal(readdirSync(folder).length, 3);
    await kit.process.kill("SIGKILL");
    await until(async () => pids.every(isGone), "the jails to die");
    await kit.restart();
    assert.deepEqual(readdirSync(folder), []);
    const lost = await users[0]!.bash("true");
    assert.equal(lost.isHandLost, true);
    assert.match(lost.output, /restarted/);
  });

  it("SIGTERM ends the hands and leaves nothing behind", async () => {
    const hand = await kit.newHand();
    const operator = await kit.client("operator", "alice");
    const pid = Number((await operator.listHands({ sessionId: "" })).hands[0]!.hostPid);
    await hand.bash("echo x > y");
    await kit.process.kill("SIGTERM");
    assert.equal(await kit.process.exit, 0);
    assert.ok(isGone(pid));
    assert.deepEqual(readdirSync(join(kit.folder, "bubblewrap", "hands")), []);
    await kit.restart();
  });
});

describe("sandbox: limits of a host", function () {
  this.timeout(60_000);

  it("idle hands are ended and the next call is told [B070]", async () => {
    const kit = await SandboxKit.start({ GANGLION_HAND_IDLE_TTL_MS: "1000" });
    try {
      const hand = await kit.newHand();
      const isLost = async () =>
        (await kit.harness.listHands({ sessionId: hand.sessionId })).hands[0]!.state ===
        HandState.HAND_STATE_LOST;
      await until(isLost, "the hand to be ended");
      assert.match((await hand.bash("true")).output, /idle/);
    } finally {
      await kit.stop();
    }
  });

  it("no more hands than the host takes, and the same request gives the same hand", async () => {
    const kit = await SandboxKit.start({ GANGLION_MAX_HANDS: "2" });
    try {
      const sessionId = kit.newSession();
      const request = {
        ...{ requestId: "req-1", sessionId, epoch: 1n },
        ...{ resources: undefined, repositories: [] },
      };
      const same = await Promise.all([1, 2, 3].map(() => kit.harness.provision(request)));
      assert.equal(new Set(same.map(({ hand }) => hand!.id)).size, 1);
      const second = await kit.hand(sessionId);
      await assert.rejects(kit.hand(sessionId), reason("HAND_LIMIT"));
      await kit.harness.terminate({ handId: second.id, sessionId, epoch: 1n });
      await kit.hand(sessionId);
      await kit.harness.terminate({ handId: same[0]!.hand!.id, sessionId, epoch: 1n });
      const renewed = await kit.harness.provision(request);
      assert.notEqual(renewed.hand!.id, same[0]!.hand!.id);
    } finally {
      await kit.stop();
    }
  });
});

function unexpected(): never {
  assert.fail("the call was answered");
}

function isGone(pid: number): boolean {
  if (!existsSync(`/proc/${pid}`)) return true;
  try {
    return /State:\s+Z/.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return true;
  }
}
