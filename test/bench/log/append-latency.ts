import { reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import type { Pair } from "../report/statistics.ts";
import { timeOf } from "../report/time-of.ts";
import type { LogStand } from "../stands/log-stand.ts";
import { directCaller, grpcCaller } from "./callers.ts";

const FIGURES = ["append_ms_p50", "append_ms_p99"];
const WARM_UP = 2_000;
const PAIRS = 1_000;

/** How long one caller waits for one event, through the service and with the same statement run directly, in turns. */
export const appendLatencyBenchmark: Benchmark<LogStand> = {
  figures: FIGURES,
  async run(stand, { report }) {
    const [session] = await stand.leaseSessions(1);
    if (!session) throw new Error("no session was made");
    const through = grpcCaller(stand, session, 1);
    const directly = await directCaller(stand, session, 1);
    const pairs: Pair[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n++) {
      const pair = { ours: await timeOf(through), baseline: await timeOf(directly) };
      if (n >= WARM_UP) pairs.push(pair);
    }
    reportQuantiles(report, FIGURES, "ms", pairs);
  },
};
