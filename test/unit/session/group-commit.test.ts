import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { GroupCommit } from "../../../services/session/store/group-commit.ts";
import { Slots } from "../../../services/session/store/slots.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("group commit", () => {
  const make = (lanes = 1) => {
    const groups: { calls: readonly string[]; done: (error?: Error) => void }[] = [];
    const group = new GroupCommit<string, string>({
      lanes,
      maxCalls: 3,
      maxBytes: 10,
      sizeOf: (call) => call.length,
      keyOf: (call) => call[0] ?? "",
      run: (calls) =>
        new Promise((resolve, reject) => {
          groups.push({
            calls,
            done: (error) => {
              if (error) reject(error);
              else resolve(calls.map((call) => ({ status: "fulfilled" as const, value: `${call}!` })));
            },
          });
        }),
    });
    return { group, groups };
  };

  it("sends a lone call at once and gathers the others while it is under way", async () => {
    const { group, groups } = make();
    const first = group.submit("a1");
    await turn();
    const rest = ["b1", "c1", "d1", "e1"].map((call) => group.submit(call));
    await turn();
    assert.deepEqual(
      groups.map(({ calls }) => calls),
      [["a1"]],
    );
    groups[0]?.done();
    assert.equal(await first, "a1!");
    await turn();
    assert.deepEqual(groups[1]?.calls, ["b1", "c1", "d1"]);
    groups[1]?.done();
    await turn();
    await turn();
    groups[2]?.done();
    assert.deepEqual(await Promise.all(rest), ["b1!", "c1!", "d1!", "e1!"]);
  });

  it("never has one key in two statements at a time, and keeps its order", async () => {
    const { group, groups } = make(2);
    const results = [group.submit("a1")];
    await turn();
    results.push(group.submit("a2"), group.submit("b1"));
    await turn();
    assert.deepEqual(
      groups.map(({ calls }) => calls),
      [["a1"], ["b1"]],
    );
    groups[0]?.done();
    await turn();
    await turn();
    assert.deepEqual(groups[2]?.calls, ["a2"]);
    groups[1]?.done();
    groups[2]?.done();
    assert.deepEqual(await Promise.all(results), ["a1!", "a2!", "b1!"]);
  });

  it("limits a group by bytes but takes a large call alone", async () => {
    const { group, groups } = make();
    const calls = ["a".repeat(20), "b23456", "c23456"].map((call) => group.submit(call));
    await turn();
    assert.equal(groups[0]?.calls.length, 1);
    groups[0]?.done();
    await turn();
    await turn();
    assert.deepEqual(groups[1]?.calls, ["b23456"]);
    groups[1]?.done();
    await turn();
    await turn();
    groups[2]?.done();
    await Promise.all(calls);
  });

  it("a failed group fails its own calls and no later ones", async () => {
    const { group, groups } = make();
    const lost = group.submit("a1").catch((error: Error) => error.message);
    await turn();
    groups[0]?.done(new Error("gone"));
    assert.equal(await lost, "gone");
    const next = group.submit("a2");
    await turn();
    groups[1]?.done();
    assert.equal(await next, "a2!");
  });

  it("a call whose caller has gone is taken out while it waits", async () => {
    const { group, groups } = make();
    void group.submit("a1");
    await turn();
    const abort = new AbortController();
    const waiting = group.submit("b1", abort.signal);
    abort.abort();
    await assert.rejects(waiting, (error) => GanglionError.is(error, "DATABASE_UNAVAILABLE"));
    groups[0]?.done();
    await turn();
    await turn();
    assert.equal(groups.length, 1);
  });
});

describe("slots [B054]", () => {
  it("are given in order of arrival and never more than there are", async () => {
    const slots = new Slots(1, 1_000);
    const giveBack = await slots.take();
    const order: number[] = [];
    const waiters = [1, 2].map(async (n) => {
      const back = await slots.take();
      order.push(n);
      back();
    });
    await turn();
    assert.deepEqual(order, []);
    giveBack();
    await Promise.all(waiters);
    assert.deepEqual(order, [1, 2]);
    (await slots.take())();
  });

  it("are waited for no longer than the signal and the limit allow", async () => {
    const slots = new Slots(1, 20);
    const giveBack = await slots.take();
    const unavailable = (error: unknown) => GanglionError.is(error, "DATABASE_UNAVAILABLE");
    await assert.rejects(slots.take(AbortSignal.abort()), unavailable);
    await assert.rejects(slots.take(), unavailable);
    giveBack();
    (await slots.take())();
  });
});
