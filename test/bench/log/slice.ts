import { randomInt } from "node:crypto";
import pg from "pg";
import { GetEventsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { encodeNewEvent } from "../../../services/session/store/event-codec.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Pair, quantile } from "../report/statistics.ts";
import { timeOf } from "../report/time-of.ts";
import type { LeasedSession, LogStand } from "../stands/log-stand.ts";
import { SAMPLE_TYPE, sampleEvent } from "./sample-event.ts";

const FIGURE = "slice_1m_vs_1k_ratio_p99";
const LONG = 1_000_000;
const SHORT = 1_000;
const SLICE = 100;
const BODY_BYTES = 256;
const WARM_UP = 100;
const PAIRS = 1_000;

/** GetEvents of a hundred events anywhere in a log of a million, against the same in a log of a thousand. */
export const sliceBenchmark: Benchmark<LogStand> = {
  figures: [FIGURE],
  async run(stand, { say, report }) {
    const [long, short] = await stand.leaseSessions(2);
    if (!long || !short) throw new Error("no sessions were made");
    const took = await timeOf(() => fill(stand, long, LONG));
    await fill(stand, short, SHORT);
    say(`${FIGURE}: a log of ${LONG} events was made in ${(took / 1000).toFixed(0)} s`);
    const read = async ({ sessionId }: LeasedSession, length: number) => {
      const afterPosition = BigInt(randomInt(length - SLICE));
      const request = GetEventsRequest.fromPartial({ sessionId, afterPosition, limit: SLICE });
      const { events } = await stand.harness.log.getEvents(request);
      if (events.length !== SLICE || events[0]?.position !== afterPosition + 1n)
        throw new Error(`${events.length} events came instead of ${SLICE}`);
    };
    const pairs: Pair[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n++) {
      const pair = {
        ours: await timeOf(() => read(long, LONG)),
        baseline: await timeOf(() => read(short, SHORT)),
      };
      if (n >= WARM_UP) pairs.push(pair);
    }
    const of = (side: keyof Pair) => pairs.map((pair) => pair[side]);
    say(`${FIGURE}: medians ${median(of("ours")).toFixed(2)} ms and ${median(of("baseline")).toFixed(2)} ms`);
    const baseline = quantile(of("baseline"), 0.99);
    const value = quantile(of("ours"), 0.99) / baseline;
    report({ name: FIGURE, value, unit: "ratio", baseline, ratio: value, n: PAIRS });
  },
};

/** Fills a log by one statement: appending a million events takes too long, and their number is all that matters. */
async function fill(
  { postgres }: LogStand,
  { sessionId, epoch }: LeasedSession,
  length: number,
): Promise<void> {
  const { body, digest } = encodeNewEvent(sampleEvent(BODY_BYTES), SAMPLE_TYPE);
  const client = new pg.Client(postgres.connection("ganglion_owner"));
  await client.connect();
  try {
    await client.query(
      `INSERT INTO session.events (workspace_id, session_id, position, event_id, type, thread_id, epoch, actor_role,
         actor_subject, traceparent, may_ignore, body, body_digest)
       SELECT s.workspace_id, s.session_id, n, 'sevt_bench' || n, $2, '', $3, 2, 'bench', '', false, $4, $5
       FROM session.sessions s, generate_series(s.head + 1, $6::bigint) n WHERE s.session_id = $1`,
      [sessionId, SAMPLE_TYPE, epoch, body, digest, length],
    );
    await client.query("UPDATE session.sessions SET head = $2 WHERE session_id = $1", [sessionId, length]);
    await client.query("VACUUM ANALYZE session.events");
  } finally {
    await client.end();
  }
}
