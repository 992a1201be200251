import assert from "node:assert/strict";
import { CleanUps } from "../../bench/report/clean-ups.ts";
import type { Figure } from "../../bench/report/figure.ts";
import { pickFigures } from "../../bench/report/pick-figures.ts";
import { type Benchmark, defineSuite, runSuites, type Suite } from "../../bench/report/run-suites.ts";

const figure = (name: string): Figure => ({ name, value: 1, unit: "ms", baseline: 2, ratio: 0.5, n: 3 });
const benchmark = (...figures: string[]): Benchmark<string> => ({
  figures,
  run: async (_stand, { report }) => {
    for (const name of figures) report(figure(name));
  },
});

describe("picking figures", () => {
  const names = ["append_c1_ratio", "append_c64_ratio", "ttft_added_ms_p50"];

  it("a prefix keeps the names that begin with it", () => {
    assert.deepEqual(pickFigures(names, "append_c"), ["append_c1_ratio", "append_c64_ratio"]);
    assert.deepEqual(pickFigures(names, "c1"), []);
  });

  it("no prefix keeps all", () => {
    assert.deepEqual(pickFigures(names, ""), names);
  });
});

describe("running benchmarks", () => {
  it("prints the picked figures only, and starts only what they need", async () => {
    const { started, suites } = twoSuites();
    const run = await runPicked(suites, ["a_one"]);
    assert.deepEqual(run.names, ["a_one"]);
    assert.deepEqual(run.problems, []);
    assert.deepEqual(started, ["a", "a stopped"]);
  });

  it("stops what one suite needs before the next one starts", async () => {
    const { started, suites } = twoSuites();
    await runPicked(suites, ["a_one", "b_one"]);
    assert.deepEqual(started, ["a", "a stopped", "b", "b stopped"]);
  });

  it("a benchmark that cannot run is a problem, and the others still run", async () => {
    const broken: Benchmark<string> = {
      figures: ["x"],
      run: () => Promise.reject(new Error("no such thing")),
    };
    const run = await runPicked([defineSuite(async () => "", [broken, benchmark("y")])], ["x", "y"]);
    assert.deepEqual(run.names, ["y"]);
    assert.match(run.problems.join("\n"), /no such thing[\s\S]*x was not measured/);
  });

  it("a suite that cannot start fails all of its figures and is cleaned up", async () => {
    const { started, suites } = twoSuites();
    const broken = defineSuite<string>(
      async (cleanUps) => {
        cleanUps.add(() => void started.push("half stopped"));
        throw new Error("cannot start");
      },
      [benchmark("x")],
    );
    const run = await runPicked([broken, ...suites], ["x", "b_one"]);
    assert.deepEqual(run.names, ["b_one"]);
    assert.match(run.problems.join("\n"), /cannot start[\s\S]*x was not measured/);
    assert.equal(started[0], "half stopped");
  });

  it("a picked figure that nobody reports is a problem", async () => {
    const silent: Benchmark<string> = { figures: ["x"], run: async () => {} };
    const run = await runPicked([defineSuite(async () => "", [silent])], ["x"]);
    assert.deepEqual(run.problems, ["x was not measured"]);
  });

  it("cleaning up goes on after a failure, last things first", async () => {
    const done: string[] = [];
    const cleanUps = new CleanUps((error) => done.push((error as Error).message));
    cleanUps.add(() => void done.push("first"));
    cleanUps.add(() => Promise.reject(new Error("failed")));
    cleanUps.add(async () => void done.push("last"));
    await cleanUps.run();
    await cleanUps.run();
    assert.deepEqual(done, ["last", "failed", "first"]);
  });
});

function twoSuites(): { started: string[]; suites: Suite[] } {
  const started: string[] = [];
  const suite = (name: string) =>
    defineSuite(
      async (cleanUps) => {
        started.push(name);
        cleanUps.add(() => void started.push(`${name} stopped`));
        return name;
      },
      [benchmark(`${name}_one`, `${name}_two`)],
    );
  return { started, suites: [suite("a"), suite("b")] };
}

async function runPicked(suites: Suite[], picked: string[]) {
  const names: string[] = [];
  const output = { say: () => {}, print: (line: string) => void names.push(JSON.parse(line).name) };
  const problems = await runSuites(
    suites,
    new Set(picked),
    output,
    new CleanUps((error) => assert.fail(String(error))),
  );
  return { names, problems };
}
