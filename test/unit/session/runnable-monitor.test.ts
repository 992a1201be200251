import assert from "node:assert/strict";
import { RunnableMonitor } from "../../../services/session/live/runnable-monitor.ts";

/** A monitor with two harnesses that wait for work; what each was told, in order. */
async function twoHarnesses(count: () => number) {
  let looks = 0;
  const monitor = new RunnableMonitor(
    {
      countRunnable: async () => {
        looks += 1;
        return count();
      },
    },
    60_000,
  );
  const over = new AbortController();
  const told: { first: number[]; second: number[] } = { first: [], second: [] };
  let wake = (): void => {};
  const follow = async (list: number[]): Promise<void> => {
    for await (const runnable of monitor.watch(over.signal, 60_000)) {
      list.push(runnable);
      wake();
    }
  };
  const ended = [follow(told.first), follow(told.second)];
  const until = async (isDone: () => boolean): Promise<void> => {
    while (!isDone()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  await until(() => told.first.length === 1 && told.second.length === 1);
  return {
    monitor,
    told,
    until,
    looks: () => looks,
    stop: async () => {
      over.abort();
      await Promise.all(ended);
      monitor.close();
    },
  };
}

describe("who is told that there is something to lease", () => {
  it("is one harness at once and without a look, the next one the next time, and all when it is still there", async () => {
    let runnable = 0;
    const { monitor, told, until, looks, stop } = await twoHarnesses(() => runnable);
    const before = looks();
    monitor.hint();
    await until(() => told.first.length === 2);
    assert.deepEqual(told, { first: [0, 1], second: [0] });
    assert.equal(looks(), before);
    monitor.hint();
    await until(() => told.second.length === 2);
    assert.deepEqual(told, { first: [0, 1], second: [0, 1] });
    runnable = 5;
    await until(() => told.first.length === 3 && told.second.length === 3);
    assert.deepEqual(told, { first: [0, 1, 5], second: [0, 1, 5] });
    await stop();
  });

  it("is nobody at once when somebody holds the session, and all when the holder turns out to be dead", async () => {
    const { monitor, told, until, stop } = await twoHarnesses(() => 5);
    told.first.length = 0;
    told.second.length = 0;
    monitor.hint(true);
    // Who is told at once hears of one session, before anybody has counted.
    await until(() => told.first.length > 0 && told.second.length > 0);
    assert.deepEqual(told, { first: [5], second: [5] });
    await stop();
  });
});
