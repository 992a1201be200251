import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Bench, Benchmark } from "../report/run-suites.ts";
import { quantile } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { openLog } from "./open-log.ts";
import { createdAtMs, playTurn } from "./play-turn.ts";

const KILLED = ["takeover_s_p50", "takeover_s_p99"];
const STOPPED = ["takeover_clean_s_p99"];
const KILLS = 50;
const STOPS = 20;
/** A second of text, so that the brain is in the middle of it. */
const SCENARIO = "scenario: slow ms=1000";

/**
 * From the end of the harness that is in the middle of an answer to the first event that the other one appends. The
 * supervisor is stopped meanwhile, so that nobody starts the first one again: as if its machine were gone.
 */
export const takeoverBenchmark: Benchmark<MeshStand> = {
  figures: [...KILLED, ...STOPPED],
  async run(stand, bench) {
    await measure(stand, bench, { figures: KILLED, signal: "SIGKILL", count: KILLS });
    await measure(stand, bench, { figures: STOPPED, signal: "SIGTERM", count: STOPS });
  },
};

interface Plan {
  readonly figures: readonly string[];
  readonly signal: "SIGKILL" | "SIGTERM";
  readonly count: number;
}

async function measure(
  stand: MeshStand,
  { picked, say, report }: Bench,
  { figures, signal, count }: Plan,
): Promise<void> {
  if (!figures.some((name) => picked.has(name))) return;
  const { mesh } = stand;
  const log = await openLog(stand);
  const supervisor = mesh.supervisorPid();
  stand.cleanUps.add(() => void process.kill(supervisor, "SIGCONT"));
  const seconds: number[] = [];
  for (const sessionId of await stand.createSessions(count, { name: "bench", model: "claude-opus-5-5" })) {
    let endedAt = Number.NaN;
    let brain = "";
    let pid = 0;
    let isTaken = false;
    const events = await playTurn(log, sessionId, SCENARIO, async ({ message }) => {
      if (message?.$case === "event") {
        if (message.value.type !== "ganglion.lease_acquired" || Number.isNaN(endedAt) || isTaken) return;
        isTaken = true;
        process.kill(supervisor, "SIGCONT");
      }
      const isText = message?.$case === "preview" && message.value.message?.$case === "text";
      if (!isText || brain !== "") return;
      const { lease } = await log.getLease({ sessionId });
      brain = lease?.owner.split("/").at(-1) ?? "";
      pid = mesh.pid(brain);
      process.kill(supervisor, "SIGSTOP");
      endedAt = Date.now();
      process.kill(pid, signal);
    });
    const taken = events.findLast(({ type }) => type === "ganglion.lease_acquired");
    if (!taken || taken.actor === undefined || !isTaken) throw new Error(`nobody took over ${sessionId}`);
    if (taken.body?.$case === "ganglionLeaseAcquired" && taken.body.value.owner.endsWith(`/${brain}`))
      throw new Error(`${brain} came back`);
    seconds.push((createdAtMs(taken) - endedAt) / 1000);
    await mesh.ready(brain, pid);
  }
  const spread = [0, 0.5, 1].map((q) => quantile(seconds, q).toFixed(2)).join(" / ");
  say(`${figures[0]}: ${signal}, least / median / most ${spread} s`);
  reportQuantiles(report, figures, "s", alone(seconds));
}
