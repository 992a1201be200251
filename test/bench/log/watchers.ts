import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";
import type { LogStand } from "../stands/log-stand.ts";
import { grpcCaller } from "./callers.ts";

const FIGURE = "watchers_1000_ms_p99";
const MAIN = fileURLToPath(new URL("watcher-process.ts", import.meta.url));
const WATCHERS = 1_000;
const CONNECTIONS = 8;
const WARM_UP = 5;
const ROUNDS = 40;

/** One append to a session that a thousand watch, from the call to the event at each of them; all rounds together. */
export const watchersBenchmark: Benchmark<LogStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const [session] = await stand.leaseSessions(1);
    if (!session) throw new Error("no session was made");
    const { address, tls } = stand.door;
    const child = spawn(
      process.execPath,
      [MAIN, address, tls.directory, session.sessionId, String(WATCHERS), String(CONNECTIONS)],
      { env: {}, stdio: ["ignore", "pipe", "inherit"] },
    );
    stand.cleanUps.add(() => void child.kill("SIGKILL"));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<{ ready?: boolean; at?: string[] }> => {
      const { value, done } = await lines.next();
      if (done) throw new Error("the process of the watchers ended");
      return JSON.parse(value);
    };
    if ((await next()).ready !== true) throw new Error("the watches were not opened");
    const append = grpcCaller(stand, session, 1);
    const delays: number[] = [];
    const first: number[] = [];
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const begun = process.hrtime.bigint();
      const [{ at = [] }] = await Promise.all([next(), append()]);
      if (at.length !== WATCHERS) throw new Error(`${at.length} watchers were told`);
      if (round < WARM_UP) continue;
      const ms = at.map((arrived) => Number(BigInt(arrived) - begun) / 1e6);
      delays.push(...ms);
      first.push(Math.min(...ms));
    }
    child.kill("SIGKILL");
    say(
      `${FIGURE}: the first of ${WATCHERS} has the event after ${median(first).toFixed(1)} ms, the median one after ${median(delays).toFixed(1)} ms`,
    );
    reportQuantiles(report, [FIGURE], "ms", alone(delays));
  },
};
