import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../kit/mesh.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";

const RUNS = 3;

/** Time of `ganglion up` from the shell's point of view: empty state folder to every part ready and the prompt back. */
export const upBenchmark: Benchmark<{ readonly cleanUps: CleanUps }> = {
  figures: ["up_seconds"],
  async run({ cleanUps }, { say, report }) {
    const seconds: number[] = [];
    for (let n = 0; n < RUNS; n++) {
      seconds.push(await coldStart());
      say(`up_seconds: start ${n + 1} of ${RUNS} took ${seconds.at(-1)?.toFixed(2)} s`);
      await cleanUps.run();
    }
    const value = median(seconds);
    report({ name: "up_seconds", value, unit: "s", baseline: null, ratio: null, n: RUNS });

    async function coldStart(): Promise<number> {
      const state = mkdtempSync(join(tmpdir(), "ganglion-bench-up-"));
      cleanUps.add(() => rmSync(state, { recursive: true, force: true }));
      cleanUps.add(() => runCli(["down", "--state-dir", state]).then(() => {}));
      const begun = performance.now();
      const { code, stdout, stderr } = await runCli([
        "up",
        ...["--state-dir", state, "--rest-port", "0", "--grpc-port", "0", "--scripted-model", "--json"],
      ]);
      const took = (performance.now() - begun) / 1000;
      if (code !== 0) throw new Error(`ganglion up ended with ${code}: ${stderr}${stdout}`);
      return took;
    }
  },
};
