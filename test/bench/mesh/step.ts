import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { script } from "../../kit/stage.ts";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { openLog } from "./open-log.ts";
import { createdAtMs, playTurn } from "./play-turn.ts";

const FIGURE = "step_ms_p75";
/** Sessions, of which the first ones are not measured, and their turns. */
const WARM_UP = 4;
const MEASURED = 2;
const TURNS = 4;
const STEPS = 20;

/**
 * From a tool's result in the log to the next model request at the model: the log's time of the result, which is taken
 * just before its commit, and the model's own time, when it has read the request. All on one clock.
 */
export const stepBenchmark: Benchmark<MeshStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const log = await openLog(stand);
    const sessions = await stand.createSessions(WARM_UP + MEASURED, {
      name: "bench steps",
      model: "claude-opus-5-5",
      tools: [{ type: "agent_toolset_20260401" }],
    });
    const whole: number[] = [];
    const asked: number[] = [];
    for (const [index, sessionId] of sessions.entries()) {
      for (let turn = 0; turn < TURNS; turn++) {
        const times = await playSteps(stand, log, sessionId, turn);
        // The first turn has the start of the hand in it.
        if (index < WARM_UP || turn === 0) continue;
        whole.push(...times.map(({ wholeMs }) => wholeMs));
        asked.push(...times.map(({ askedMs }) => askedMs));
      }
    }
    const [all, wire] = [median(whole), median(asked)];
    say(
      `${FIGURE}: median ${all.toFixed(2)} ms: ${(all - wire).toFixed(2)} until the request's own event is stored, ${wire.toFixed(2)} until the model has it`,
    );
    reportQuantiles(report, [FIGURE], "ms", alone(whole));
  },
};

/** Plays a turn; for each step, how long after its tool's result, and after the request's own event, the model had it. */
async function playSteps(
  { model }: MeshStand,
  log: Awaited<ReturnType<typeof openLog>>,
  sessionId: string,
  turn: number,
): Promise<{ wholeMs: number; askedMs: number }[]> {
  const steps = Array.from({ length: STEPS }, () => ({
    calls: [{ name: "bash", input: { command: "true" } }],
  }));
  const last = (await model.journal.entries()).at(-1)?.n ?? 0;
  const events = await playTurn(log, sessionId, script(steps, `id=${turn}`));
  const results = timesOf(events, "agent.tool_result");
  const spans = timesOf(events, "span.model_request_start").slice(1);
  const requests = (await model.journal.entries())
    .filter(({ n, kind }) => n > last && kind === "request")
    .map((entry) => entry.at_ms as number)
    .slice(1);
  if (![results, spans, requests].every(({ length }) => length === STEPS))
    throw new Error(`${results.length} results were followed by ${requests.length} requests`);
  return requests.map((at, step) => ({
    wholeMs: at - (results[step] as number),
    askedMs: at - (spans[step] as number),
  }));
}

function timesOf(events: readonly Event[], type: string): number[] {
  return events.filter((event) => event.type === type).map(createdAtMs);
}
