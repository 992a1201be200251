import { once } from "node:events";
import pg from "pg";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import {
  SessionServiceService,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { connectionConfig } from "../../../services/session/store/database.ts";
import { reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Pair } from "../report/statistics.ts";
import type { LeasedSession, LogStand } from "../stands/log-stand.ts";
import { directCaller, grpcCaller } from "./callers.ts";

const FIGURES = ["tail_ms_p50", "tail_ms_p99"];
const WARM_UP = 2_000;
const PAIRS = 500;
const CHANNEL = "ganglion_bench_tail";

/** Appends once; resolves when the event is at the reader. */
type Tail = () => Promise<{ deliveredMs: number; answeredMs: number }>;

/**
 * From the call of EmitEvents to the event on a WatchEvents of another connection, against the same statement run
 * directly, NOTIFY, LISTEN on another connection and a select of the new row there.
 */
export const tailBenchmark: Benchmark<LogStand> = {
  figures: FIGURES,
  async run(stand, { say, report }) {
    const [watched, plain] = await stand.leaseSessions(2);
    if (!watched || !plain) throw new Error("no sessions were made");
    const ours = await watchedTail(stand, watched);
    const baseline = await listeningTail(stand, plain);
    const pairs: (Pair & { answered: number })[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n++) {
      const through = await ours();
      const directly = await baseline();
      if (n < WARM_UP) continue;
      pairs.push({
        ours: through.deliveredMs,
        baseline: directly.deliveredMs,
        answered: through.answeredMs,
      });
    }
    const answered = median(pairs.map((pair) => pair.answered)).toFixed(2);
    say(`tail_ms: the append itself is answered after ${answered} ms (median)`);
    reportQuantiles(report, FIGURES, "ms", pairs);
  },
};

async function watchedTail(stand: LogStand, session: LeasedSession): Promise<Tail> {
  const { address, service, tls } = stand.door;
  const reader = createClient(SessionServiceService, address, tls, service);
  stand.cleanUps.add(() => reader.close());
  const stop = new AbortController();
  stand.cleanUps.add(() => stop.abort());
  const watch = reader
    .watchEvents(WatchEventsRequest.fromPartial({ sessionId: session.sessionId, fromHead: true }), {
      signal: stop.signal,
    })
    [Symbol.asyncIterator]();
  await watch.next();
  const append = grpcCaller(stand, session, 1);
  return async () => {
    const begun = performance.now();
    const answered = append().then(() => performance.now() - begun);
    for (;;) {
      const { value, done } = await watch.next();
      if (done) throw new Error("the watch ended");
      if (value.message?.$case === "event") break;
    }
    const deliveredMs = performance.now() - begun;
    return { deliveredMs, answeredMs: await answered };
  };
}

async function listeningTail(stand: LogStand, session: LeasedSession): Promise<Tail> {
  const [writer, listener] = [await connect(stand), await connect(stand)];
  await listener.query(`LISTEN ${CHANNEL}`);
  const append = await directCaller(stand, session, 1);
  const { rows } = await listener.query("SELECT head FROM session.sessions WHERE session_id = $1", [
    session.sessionId,
  ]);
  let position = rows[0].head as bigint;
  return async () => {
    const begun = performance.now();
    const heard = once(listener, "notification");
    await append();
    const answeredMs = performance.now() - begun;
    const told = writer.query({ name: "tell", text: `SELECT pg_notify('${CHANNEL}', '')` });
    await heard;
    const read = await listener.query({
      name: "tail",
      text: "SELECT position, body FROM session.events WHERE session_id = $1 AND position > $2 ORDER BY position",
      values: [session.sessionId, position],
    });
    position = read.rows.at(-1).position;
    const deliveredMs = performance.now() - begun;
    await told;
    return { deliveredMs, answeredMs };
  };
}

async function connect({ postgres, cleanUps }: LogStand): Promise<pg.Client> {
  const client = new pg.Client(connectionConfig(() => postgres.connection("ganglion_session")));
  client.on("error", () => {});
  await client.connect();
  cleanUps.add(() => client.end());
  return client;
}
