import type { MeshClient } from "../../../services/common/grpc/create-client.ts";
import type { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { awaitRelease } from "./await-release.ts";
import { openLogWriter } from "./long-log.ts";
import { openLog } from "./open-log.ts";
import { createdAtMs, playTurn } from "./play-turn.ts";

/** Length of the log, by the figure's name, and how many sessions of it are woken. */
const LENGTHS = [
  { name: "1k", events: 1_000, sessions: 8 },
  { name: "10k", events: 10_000, sessions: 5 },
  { name: "100k", events: 100_000, sessions: 3 },
];
const WARM_UP = 20;
const SCENARIO = "scenario: plain words=2";
const AGENT = {
  name: "bench wake",
  model: "claude-opus-5-5",
  tools: [{ type: "agent_toolset_20260401" }],
};
const coldFigure = (name: string) => `wake_${name}_cold_ms`;
const warmFigure = (name: string) => `wake_${name}_ms`;

/**
 * From a lease given to the first model request written down: the harness has read and folded the log, built the request
 * and appended what it is about to send; both times are the log's own. Cold: no brain has ever had the session. Then all
 * brains let go, and the same sessions are woken again, with what the first brain has left behind.
 */
export const wakeBenchmark: Benchmark<MeshStand> = {
  figures: LENGTHS.flatMap(({ name }) => [warmFigure(name), coldFigure(name)]),
  async run(stand, { picked, say, report }) {
    const log = await openLog(stand);
    const writer = await openLogWriter(stand);
    for (const sessionId of await stand.createSessions(WARM_UP, AGENT)) {
      await writer.fill(sessionId, 1_000);
      await wake(log, sessionId);
    }
    const empty: number[] = [];
    for (const sessionId of await stand.createSessions(WARM_UP, AGENT))
      empty.push(await wake(log, sessionId));
    say(`wake: a log of nothing takes ${median(empty).toFixed(1)} ms`);
    for (const { name, events, sessions } of LENGTHS) {
      if (!picked.has(warmFigure(name)) && !picked.has(coldFigure(name))) continue;
      const ids = await stand.createSessions(sessions, AGENT);
      for (const id of ids) await writer.fill(id, events);
      for (const figure of [coldFigure(name), warmFigure(name)]) {
        const samples: number[] = [];
        for (const id of ids) samples.push(await wake(log, id));
        say(`${figure}: ${samples.map((ms) => ms.toFixed(1)).join(", ")} ms`);
        const value = median(samples);
        report({ name: figure, value, unit: "ms", baseline: null, ratio: null, n: samples.length });
        await awaitRelease(log, ids);
      }
    }
  },
};

async function wake(log: MeshClient<typeof SessionServiceService>, sessionId: string): Promise<number> {
  const events = await playTurn(log, sessionId, SCENARIO);
  const first = (type: string) => {
    const event = events.find((one) => one.type === type);
    if (!event) throw new Error(`there is no ${type} in the turn of ${sessionId}`);
    return createdAtMs(event);
  };
  return first("span.model_request_start") - first("ganglion.lease_acquired");
}
