import type { Bench, Benchmark } from "../report/run-suites.ts";
import { median, type Pair, quantile, ratios } from "../report/statistics.ts";
import type { LogStand } from "../stands/log-stand.ts";
import { type Caller, directCaller, grpcCaller } from "./callers.ts";

const WARM_UP_MS = 5_000;
const ROUND_MS = 1_000;
const ROUNDS = 11;

/** appendBenchmark compares appends through the service with the same statement run directly. */
export function appendBenchmark(plan: {
  readonly figure: string;
  readonly callers: number;
  readonly batch: number;
}): Benchmark<LogStand> {
  const { figure, callers, batch } = plan;
  return {
    figures: [figure],
    async run(stand, bench) {
      const sessions = await stand.leaseSessions(callers);
      const ours = sessions.map((session) => grpcCaller(stand, session, batch));
      const direct: Caller[] = [];
      for (const session of sessions) direct.push(await directCaller(stand, session, batch));
      await rate(ours, WARM_UP_MS);
      await rate(direct, WARM_UP_MS);
      const pairs: Pair[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const through = await rate(ours, ROUND_MS);
        const directly = await rate(direct, ROUND_MS);
        pairs.push({ ours: through * batch, baseline: directly * batch });
      }
      const value = median(ratios(pairs));
      const baseline = median(pairs.map((pair) => pair.baseline));
      describe(bench, figure, pairs);
      bench.report({ name: figure, value, unit: "ratio", baseline, ratio: value, n: ROUNDS });
    },
  };
}

/** Appends per second: all callers at once, each with one append under way at a time, until the time is over and the last has answered. */
async function rate(callers: readonly Caller[], forMs: number): Promise<number> {
  const begun = performance.now();
  let appended = 0;
  await Promise.all(
    callers.map(async (append) => {
      while (performance.now() - begun < forMs) {
        await append();
        appended += 1;
      }
    }),
  );
  return (appended * 1000) / (performance.now() - begun);
}

function describe({ say }: Bench, figure: string, pairs: readonly Pair[]): void {
  const ours = median(pairs.map((pair) => pair.ours));
  const direct = median(pairs.map(({ baseline }) => baseline));
  const all = ratios(pairs);
  const spread = [0, 1].map((q) => quantile(all, q).toFixed(2)).join("–");
  say(
    `${figure}: ${Math.round(ours)} events/s through the service, ${Math.round(direct)} directly, ratio ${median(all).toFixed(2)} (${spread})`,
  );
}
