import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { Executions } from "../../../services/sandbox/domain/executions.ts";
import { HandLostError } from "../../../services/sandbox/domain/hand-driver.ts";
import { HandRegistry } from "../../../services/sandbox/domain/hand-registry.ts";
import { LeaseGuard } from "../../../services/sandbox/domain/lease-guard.ts";
import { FakeDriver, type FakeHand, FakeJournal, okRun } from "./fake-driver.ts";

const RESOURCES = { memoryBytes: 1, cpuMillis: 1, maxProcesses: 1, diskBytes: 1 };
const SESSION = "sesn_1";
const reason = (expected: string) => (error: unknown) => GanglionError.is(error, expected);

describe("sandbox domain: each key once (L4)", () => {
  let driver: FakeDriver;
  let journal: FakeJournal;
  let hands: HandRegistry;
  let executions: Executions;
  let now: number;

  beforeEach(() => {
    now = 1_000;
    driver = new FakeDriver();
    journal = new FakeJournal();
    restart();
  });

  function restart(): void {
    const options = {
      driver,
      journal,
      maxHands: 2,
      idleTtlMs: 100,
      now: () => now,
      onEvent: () => undefined,
    };
    hands = new HandRegistry(options);
    executions = new Executions({ hands, journal, now: () => now });
  }

  async function newHand(requestId = "r1") {
    const record = await hands.provision({
      sessionId: SESSION,
      requestId,
      resources: RESOURCES,
      repositories: [],
    });
    return { record, fake: driver.hands.at(-1)! };
  }

  const call = (handId: string, more = {}) => ({
    ...{ sessionId: SESSION, handId, key: "k", name: "bash", inputJson: "{}", timeoutMs: 1_000 },
    ...more,
  });

  async function untilCalled(fake: { calls: unknown[] }): Promise<void> {
    while (fake.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  it("a hand that gets its repositories has one place, and need not get them all when the service stops", async () => {
    const repositories = [{ url: "https://x/a", mountPath: "/workspace/a" }];
    const slow = hands.provision({ sessionId: SESSION, requestId: "r1", resources: RESOURCES, repositories });
    while (driver.hands.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const [first] = driver.hands as [FakeHand];
    await untilCalled(first);
    await newHand("r2");
    await assert.rejects(newHand("r3"), reason("HAND_LIMIT"));
    void first.ended.then((why) => first.runs[0]!.reject(new HandLostError(why, true)));
    await Promise.all([assert.rejects(slow, reason("PROVISION_FAILED")), hands.close()]);
    assert.ok(first.isDestroyed);
  });

  it("a repeated key attaches while it runs and is replayed afterwards", async () => {
    const { record, fake } = await newHand();
    const all = [1, 2, 3].map(() => executions.execute(call(record.id)));
    await untilCalled(fake);
    fake.runs[0]!.resolve(okRun("once"));
    for (const view of await Promise.all(all)) assert.equal(view.result.output, "once");
    const replayed = await executions.execute(call(record.id));
    assert.equal(replayed.isReplayed, true);
    assert.equal(fake.calls.length, 1);
    await assert.rejects(executions.execute(call(record.id, { inputJson: "{ }" })), reason("KEY_REUSED"));
  });

  it("nothing runs when its start cannot be recorded", async () => {
    const { record, fake } = await newHand();
    journal.failNext = "start";
    await assert.rejects(executions.execute(call(record.id)), reason("JOURNAL_UNAVAILABLE"));
    assert.equal(fake.calls.length, 0);
    assert.equal(executions.runningCount, 0);
    const retried = executions.execute(call(record.id));
    await untilCalled(fake);
    fake.runs[0]!.resolve(okRun("now"));
    assert.equal((await retried).result.output, "now");
  });

  it("a result is not told before it is recorded, and is told when it is asked again", async () => {
    const { record, fake } = await newHand();
    journal.failNext = "finish";
    const first = executions.execute(call(record.id));
    await untilCalled(fake);
    fake.runs[0]!.resolve(okRun("effect"));
    await assert.rejects(first, reason("JOURNAL_UNAVAILABLE"));
    const again = await executions.execute(call(record.id));
    assert.equal(again.result.output, "effect");
    assert.equal(journal.find(SESSION, "k")!.isFinished, true);
    assert.equal(fake.calls.length, 1);
  });

  it("started and gone is UNKNOWN after a restart, and never run again [B152]", async () => {
    const { record, fake } = await newHand();
    void executions.execute(call(record.id));
    await untilCalled(fake);
    restart();
    const view = await executions.execute(call(record.id));
    assert.equal(view.result.outcome, "UNKNOWN");
    assert.equal(view.result.isError, true);
    assert.equal(fake.calls.length, 1);
    assert.equal((await executions.execute(call(record.id, { key: "k2" }))).result.outcome, "NOT_RUN");
  });

  it("a hand that dies under a call gives UNKNOWN, before it NOT_RUN [B078]", async () => {
    const { record, fake } = await newHand();
    const running = executions.execute(call(record.id));
    await untilCalled(fake);
    fake.runs[0]!.reject(new HandLostError("it died", true));
    fake.die("it died");
    const lost = (await running).result;
    assert.deepEqual([lost.outcome, lost.isHandLost, lost.isError], ["UNKNOWN", true, true]);
    const next = (await executions.execute(call(record.id, { key: "k2" }))).result;
    assert.deepEqual([next.outcome, next.isHandLost], ["NOT_RUN", true]);
    assert.equal(fake.isDestroyed, true);
  });

  it("cancel stops a run, waits for it, and changes nothing otherwise [B007]", async () => {
    const { record, fake } = await newHand();
    const running = executions.execute(call(record.id));
    await untilCalled(fake);
    await executions.cancel({ sessionId: SESSION, key: "k" });
    assert.equal((await running).result.outcome, "CANCELLED");
    await executions.cancel({ sessionId: SESSION, key: "k" });
    await executions.cancel({ sessionId: SESSION, key: "other" });
    assert.equal((await executions.get({ sessionId: SESSION, key: "k", wait: true })).key, "k");
  });

  it("asking runs nothing", async () => {
    await assert.rejects(
      executions.get({ sessionId: SESSION, key: "k", wait: true }),
      reason("EXECUTION_NOT_FOUND"),
    );
  });

  it("a hand belongs to its session", async () => {
    const { record } = await newHand();
    const foreign = call(record.id, { sessionId: "sesn_2" });
    await assert.rejects(executions.execute(foreign), reason("HAND_NOT_FOUND"));
    await hands.terminate(record.id, "sesn_2");
    assert.equal(record.state, "READY");
  });

  it("one hand per request, no more than the host takes, and a failure can be repeated", async () => {
    driver.failure = new Error("no");
    await assert.rejects(newHand(), reason("PROVISION_FAILED"));
    driver.failure = undefined;
    const [a, b] = await Promise.all([newHand(), newHand()]);
    assert.equal(a.record, b.record);
    assert.equal(driver.hands.length, 1);
    await newHand("r2");
    await assert.rejects(newHand("r3"), reason("HAND_LIMIT"));
    await hands.terminate(a.record.id);
    const renewed = await newHand();
    assert.notEqual(renewed.record, a.record);
  });

  it("idle hands end, busy ones do not [B070]", async () => {
    const idle = await newHand("r1");
    const busy = await newHand("r2");
    const running = executions.execute(call(busy.record.id));
    await untilCalled(busy.fake);
    now += 1_000;
    await hands.reapIdle();
    assert.equal(idle.record.state, "LOST");
    assert.equal(busy.record.state, "READY");
    busy.fake.runs[0]!.resolve(okRun(""));
    await running;
    await hands.reapIdle();
    assert.equal(busy.record.state, "READY");
    await hands.close();
    assert.equal(hands.liveCount, 0);
  });
});

describe("sandbox domain: who may act for a session (L3)", () => {
  const signal = new AbortController().signal;
  const claim = (epoch: bigint, caller = "a") => ({ sessionId: SESSION, epoch, caller });

  it("asks each time, refuses lower epochs without asking, and anybody whose lease is over [B150, A131]", async () => {
    const journal = new FakeJournal();
    let lease = { epoch: 1n, owner: "a", isEnded: false };
    let asked = 0;
    const guard = new LeaseGuard(journal, {
      getLease: async () => {
        asked += 1;
        return lease;
      },
    });
    await guard.admit(claim(1n), signal);
    await guard.admit(claim(1n), signal);
    assert.equal(asked, 2);
    lease = { epoch: 1n, owner: "", isEnded: false };
    await assert.rejects(guard.admit(claim(1n), signal), reason("STALE_EPOCH"));
    lease = { epoch: 1n, owner: "a", isEnded: true };
    await assert.rejects(guard.admit(claim(1n), signal), reason("STALE_EPOCH"));
    lease = { epoch: 2n, owner: "b", isEnded: false };
    await guard.admit(claim(2n, "b"), signal);
    await assert.rejects(guard.admit(claim(1n), signal), reason("STALE_EPOCH"));
    await assert.rejects(guard.admit(claim(2n, "a"), signal), reason("STALE_EPOCH"));
    assert.equal(asked, 6);
    assert.equal(journal.seenEpoch(SESSION), 2n);
  });

  it("believes no epoch that is not confirmed, and says when it cannot ask", async () => {
    const journal = new FakeJournal();
    const good = { epoch: 1n, owner: "a", isEnded: false };
    let answer: () => Promise<typeof good | undefined> = async () => good;
    const guard = new LeaseGuard(journal, { getLease: () => answer() });
    await assert.rejects(guard.admit(claim(9n), signal), reason("STALE_EPOCH"));
    await assert.rejects(guard.admit(claim(1n, "b"), signal), reason("STALE_EPOCH"));
    assert.equal(journal.seenEpoch(SESSION), 0n);
    answer = async () => undefined;
    await assert.rejects(guard.admit(claim(1n), signal), reason("STALE_EPOCH"));
    answer = () => Promise.reject(new Error("down"));
    await assert.rejects(guard.admit(claim(1n), signal), reason("LOG_UNAVAILABLE"));
    answer = async () => good;
    journal.failNext = "epoch";
    await assert.rejects(guard.admit(claim(1n), signal), reason("JOURNAL_UNAVAILABLE"));
    await guard.admit(claim(1n), signal);
  });
});
