import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { cameBy, WANTED } from "./checks/came-by.ts";
import { intercepted } from "./core/intercept.ts";
import { type Outcome, simulate } from "./simulate.ts";

const run = promisify(execFile);

/** Seeds that once broke something. What they found has a unit test of its own; a seed means less as the code moves on. */
const FOUND: readonly { seed: number; was: string }[] = [
  { seed: 229, was: "a driver whose run was over went on without end and without a pause" },
  { seed: 7, was: "a session whose lease was granted in an answer that was lost was driven by nobody" },
  { seed: 656, was: "a request for a lease that came twice at once was given two sessions, and drove one" },
  { seed: 1045, was: "a call was said not to have run because what was asked again for it was refused" },
];
const SEEDS = 2000;
const CHUNK = 100;
const ENOUGH = 50;
const SOAK_SEEDS = 100_000;

const only = process.env.SEED;
const first = Number(process.env.FIRST_SEED ?? 1);
const count = process.env.SOAK ? Number(process.env.SEEDS ?? SOAK_SEEDS) : Number(process.env.SEEDS ?? SEEDS);

describe("the simulated mesh", function () {
  this.timeout(600_000);

  if (only !== undefined) {
    it(`keeps the laws with seed ${only}`, async () => {
      const outcome = await simulate(Number(only));
      console.log(`${outcome.trace.join("\n")}\ntrace ${outcome.traceHash}`);
      assert.deepEqual(outcome.faults, []);
    });
    return;
  }

  for (const { seed, was } of FOUND) {
    it(`keeps the laws with seed ${seed}, with which ${was}`, async () => judge(await simulate(seed)));
  }

  for (let from = first; from < first + count; from += CHUNK) {
    const to = Math.min(from + CHUNK, first + count) - 1;
    it(`keeps the laws with seeds ${from} to ${to} [B001] [B002] [B005] [B149] [B152]`, async () => {
      const missing = new Set<string>(WANTED);
      for (let seed = from; seed <= to; seed++) {
        const outcome = await simulate(seed);
        judge(outcome);
        for (const { events } of outcome.world.observers)
          for (const thing of cameBy(events)) missing.delete(thing);
      }
      // So many seeds come by everything many times over.
      if (to - from + 1 >= ENOUGH)
        assert.deepEqual([...missing], [], "no seed came by what is to be checked");
    });
  }
});

describe("the simulator", function () {
  this.timeout(300_000);

  it("does the same twice with the same seed, line by line", async () => {
    for (const seed of [3, 14, 159, 265, 358]) {
      const one = await simulate(seed);
      const other = await simulate(seed);
      assert.deepEqual(other.trace, one.trace, `seed ${seed}`);
      assert.equal(other.traceHash, one.traceHash);
    }
  });

  it("does the same in another process", async () => {
    const url = new URL("simulate.ts", import.meta.url).href;
    const code = `const { simulate } = await import("${url}"); console.log((await simulate(92)).traceHash);`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code]);
    assert.equal(stdout.trim(), (await simulate(92)).traceHash);
  });

  it("does something else with another seed", async () => {
    assert.notEqual((await simulate(1)).traceHash, (await simulate(2)).traceHash);
  });

  it("leaves clock, timers and randomness to everybody else as they are", async () => {
    const before = [setTimeout, Date.now, performance.now, Math.random, AbortSignal.timeout];
    await intercepted(async () => {
      assert.notEqual(setTimeout, before[0]);
      // Outside of a simulated process the real ones answer.
      assert.ok(Date.now() < Date.UTC(2100, 0, 1));
      const { promise, resolve } = Promise.withResolvers<string>();
      setTimeout(resolve, 1, "the real timer");
      assert.equal(await promise, "the real timer");
    });
    assert.deepEqual([setTimeout, Date.now, performance.now, Math.random, AbortSignal.timeout], before);
  });
});

function judge({ seed, faults, trace, traceHash }: Outcome): void {
  if (faults.length === 0) return;
  const replay = `SEED=${seed} npx mocha test/chaos/simulator/simulator.test.ts`;
  const end = trace.slice(-40).join("\n");
  assert.fail(
    `seed ${seed} broke:\n${faults.join("\n")}\nreplay: ${replay}\ntrace ${traceHash}, its end:\n${end}`,
  );
}
