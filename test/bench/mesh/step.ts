import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { script } from "../../kit/stage.ts";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { openLog } from "./open-log.ts";
import { createdAtMs, playTurn } from "./play-turn.ts";

const FIGURE = "step_ms_p75";
const TURNS = 6;
const STEPS = 20;

/**
 * From a tool's result in the log to the next model request at the model: the log's time of the result, which is taken
 * just before its commit, and the model's own time, when it has read the request. All on one clock.
 */
export const stepBenchmark: Benchmark<MeshStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const log = await openLog(stand);
    const [sessionId = ""] = await stand.createSessions(1, {
      name: "bench steps",
      model: "claude-opus-5-5",
      tools: [{ type: "agent_toolset_20260401" }],
    });
    const steps = Array.from({ length: STEPS }, () => ({
      calls: [{ name: "bash", input: { command: "true" } }],
    }));
    const whole: number[] = [];
    const asked: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const last = (await stand.model.journal.entries()).at(-1)?.n ?? 0;
      const events = await playTurn(log, sessionId, script(steps, `id=${turn}`));
      const results = timesOf(events, "agent.tool_result");
      const spans = timesOf(events, "span.model_request_start").slice(1);
      const requests = (await stand.model.journal.entries())
        .filter(({ n, kind }) => n > last && kind === "request")
        .map((entry) => entry.at_ms as number)
        .slice(1);
      if (![results, spans, requests].every(({ length }) => length === STEPS))
        throw new Error(`${results.length} results were followed by ${requests.length} requests`);
      // The first turn has the start of the hand in it, and everything for the first time.
      if (turn === 0) continue;
      whole.push(...requests.map((at, step) => at - (results[step] as number)));
      asked.push(...requests.map((at, step) => at - (spans[step] as number)));
    }
    const [all, wire] = [median(whole), median(asked)];
    say(
      `${FIGURE}: median ${all.toFixed(2)} ms: ${(all - wire).toFixed(2)} until the request's own event is stored, ${wire.toFixed(2)} until the model has it`,
    );
    reportQuantiles(report, [FIGURE], "ms", alone(whole));
  },
};

function timesOf(events: readonly Event[], type: string): number[] {
  return events.filter((event) => event.type === type).map(createdAtMs);
}
