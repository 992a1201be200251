import type { Benchmark } from "../report/run-suites.ts";
import { differences, median, type Pair, quantile } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";
import { createDirectClient } from "./direct-client.ts";
import { type Turn, WatchedSession } from "./watched-session.ts";

const PAIRS = 40;
const WARM_UP = 40;
const MODEL = "claude-opus-5-5";
/** Some hundred milliseconds of text, as of a model: previews of an answer that is complete at once may be shed. */
const SCENARIO = "scenario: plain words=8 delayMs=15";
const SYSTEM = "You answer in one paragraph.";

/**
 * What the mesh adds to the time to the first text, paired with a direct streaming call of the official SDK to the same
 * model with the same content. Each pair has an idle session of its own that no brain has driven before: the added time
 * holds the lease, the session token and the first read of the credential. The warm figures are the next turn of the
 * same session, paired with a direct call of their own.
 */
export const ttftBenchmark: Benchmark<MeshStand> = {
  figures: ["ttft_added_ms_p50", "ttft_added_ms_p95", "ttft_warm_added_ms_p50", "ttft_warm_added_ms_p95"],
  async run(stand, { say, report }) {
    const sessions = await stand.createSessions(WARM_UP + PAIRS, {
      name: "bench",
      model: MODEL,
      system: SYSTEM,
    });
    const direct = createDirectClient(stand.model, { model: MODEL, system: SYSTEM });
    const first: (Pair & { turn: Turn })[] = [];
    const next: (Pair & { turn: Turn })[] = [];
    for (const [index, sessionId] of sessions.entries()) {
      const session = await WatchedSession.open(stand.door, sessionId);
      for (const pairs of [first, next]) {
        const text = `${SCENARIO} id=${index}\nGood morning.`;
        const baseline = await direct(text);
        const turn = await session.say(text);
        if (index >= WARM_UP) pairs.push({ ours: turn.firstTextMs, baseline, turn });
      }
      session.close();
    }
    for (const [name, pairs] of [
      ["ttft_added", first],
      ["ttft_warm_added", next],
    ] as const) {
      const added = differences(pairs);
      const baseline = median(pairs.map((pair) => pair.baseline));
      const ours = median(pairs.map((pair) => pair.ours));
      say(`${name}: ${ours.toFixed(1)} ms through the mesh, ${baseline.toFixed(1)} ms directly`);
      say(
        `${name}: ${await whereTheTimeGoes(
          stand,
          pairs.map(({ turn }) => turn),
        )}`,
      );
      for (const [suffix, q] of [
        ["p50", 0.5],
        ["p95", 0.95],
      ] as const) {
        const [mesh, alone] = [
          quantile(
            pairs.map((pair) => pair.ours),
            q,
          ),
          quantile(
            pairs.map((pair) => pair.baseline),
            q,
          ),
        ];
        report({
          name: `${name}_ms_${suffix}`,
          value: quantile(added, q),
          unit: "ms",
          baseline: alone,
          ratio: mesh / alone,
          n: pairs.length,
        });
      }
    }
  },
};

/** Medians of the steps between sending and seeing, from the log's and the model's own times. */
async function whereTheTimeGoes({ model }: MeshStand, turns: readonly Turn[]): Promise<string> {
  const entries = await model.journal.entries();
  const seenBy = (kind: string, { sentAt, firstTextAt }: Turn) =>
    entries.find(
      (entry) =>
        entry.kind === kind && Date.parse(entry.at) >= sentAt - 1 && Date.parse(entry.at) <= firstTextAt + 1,
    )?.at;
  const marks = turns.map((turn) => [
    turn.sentAt,
    ...["user.message", "ganglion.lease_acquired", "span.model_request_start"].map((type) =>
      turn.storedAt.get(type),
    ),
    ...["request", "first_delta"].map((kind) => Date.parse(seenBy(kind, turn) ?? "")),
    turn.firstTextAt,
  ]);
  const steps = ["stored", "leased", "span stored", "model asked", "model answered", "seen"];
  return steps
    .map((step, index) => {
      const spans = marks.flatMap((mark) => {
        const before = mark.slice(0, index + 1).findLast((at) => at !== undefined && !Number.isNaN(at));
        const after = mark[index + 1];
        return before === undefined || after === undefined || Number.isNaN(after) ? [] : [after - before];
      });
      return spans.length === 0 ? `${step} –` : `${step} +${median(spans).toFixed(1)}`;
    })
    .join(", ");
}
