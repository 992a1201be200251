import { setTimeout as pass } from "node:timers/promises";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Point, slope } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { awaitRelease } from "./await-release.ts";
import { openLog } from "./open-log.ts";
import { playTurn } from "./play-turn.ts";
import { KIB_PER_MIB, rssMib } from "./rss.ts";

const FIGURE = "session_idle_kib";
/** Heaps grow to their working size before anything is measured. */
const WARM_UP = 200;
const STEPS = 5;
const STEP = 150;
const AT_ONCE = 16;
const SETTLE_MS = 3_000;
const SAMPLES = 7;
/** What keeps sessions in memory; PostgreSQL keeps them on disk, and its processes share theirs. */
const SERVICES = /^(?:session|harness|sandbox|mcp-proxy|gateway|vault)(?:-\d+)?$/;

/**
 * Memory of a session that has had a turn and that no brain holds any more, over all services: the slope of their resident
 * memory over the number of such sessions. Nobody can tell the services to collect garbage, so single differences say
 * little: the slope is the median over all pairs of steps.
 */
export const idleBenchmark: Benchmark<MeshStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const log = await openLog(stand);
    const play = async (count: number) => {
      const ids = await stand.createSessions(count, { name: "bench idle", model: "claude-opus-5-5" });
      const left = [...ids];
      const worker = async () => {
        for (let id = left.pop(); id; id = left.pop()) await playTurn(log, id, "scenario: plain words=8");
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      await awaitRelease(log, ids);
      await pass(SETTLE_MS);
    };
    await play(WARM_UP);
    const points: Point[] = [{ x: 0, y: await memoryKib(stand) }];
    for (let step = 1; step <= STEPS; step++) {
      await play(STEP);
      points.push({ x: step * STEP, y: await memoryKib(stand) });
    }
    say(`${FIGURE}: ${points.map(({ x, y }) => `${x}: ${(y / KIB_PER_MIB).toFixed(1)} MiB`).join(", ")}`);
    report({
      name: FIGURE,
      value: slope(points),
      unit: "KiB",
      baseline: null,
      ratio: null,
      n: STEPS * STEP,
    });
  },
};

async function memoryKib({ mesh }: MeshStand): Promise<number> {
  const pids = Object.entries(mesh.pids()).filter(([name]) => SERVICES.test(name));
  const samples: number[] = [];
  for (let n = 0; n < SAMPLES; n++) {
    samples.push(pids.reduce((sum, [, pid]) => sum + rssMib(pid) * KIB_PER_MIB, 0));
    await pass(500);
  }
  return median(samples);
}
