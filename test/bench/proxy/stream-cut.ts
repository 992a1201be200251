import { once } from "node:events";
import { connect } from "node:tls";
import { ANYWHERE, connectFrom, HandKit, type TestHand } from "../../contract/mcp-proxy/hand-kit.ts";
import { HELLO, MODEL, ModelStage, PLAIN } from "../../contract/mcp-proxy/model-stage.ts";
import { briefly, type ProxyKit } from "../../contract/mcp-proxy/proxy-kit.ts";
import { Recorder } from "../../contract/mcp-proxy/recorder.ts";
import { TestCa } from "../../kit/ca.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { until } from "../../kit/until.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { quantile } from "../report/statistics.ts";
import { untilCut } from "../report/until-cut.ts";

const FIGURES = ["stream_cut_s_p99"];
const SESSIONS = 60;
const BOUND_MS = 5000;
const TICK_MS = 50;
const OPEN_MS = 10_000;

/** Two replicas of mcp-proxy, with a model and a server behind them whose answers do not end. */
export interface StreamStand {
  readonly kit: ProxyKit;
  readonly other: RunningService;
  /** Hands that go out at the other replica. */
  readonly hands: HandKit;
  readonly endless: { readonly port: number; readonly ca: string };
}

/** startStreamStand starts PostgreSQL, the development vault, two replicas and the servers. */
export async function startStreamStand(
  cleanUps: CleanUps,
  say: (line: string) => void,
): Promise<StreamStand> {
  say("starting two replicas of mcp-proxy, a scripted model and a server");
  const ca = await TestCa.create();
  cleanUps.add(() => ca.remove());
  const server = await Recorder.start(ca);
  cleanUps.add(() => server.stop());
  server.listener = (_request, response) => {
    const timer = setInterval(() => response.write("tick"), TICK_MS);
    response.once("close", () => clearInterval(timer));
  };
  const stage = await ModelStage.start();
  cleanUps.add(() => stage.stop());
  const { kit } = stage;
  const other = await kit.startProxy({
    GANGLION_INSTANCE: "mcp-proxy-2",
    GANGLION_PROXY_ALLOW_HTTP_HOSTS: `localhost:${server.port}`,
  });
  cleanUps.add(() => other.stop());
  const hands = new HandKit(kit, other);
  cleanUps.add(() => hands.stop());
  return { kit, other, hands, endless: { port: server.port, ca: ca.authority.certPem } };
}

/** A session that is ended at one replica while a model's answer and a hand's tunnel of it run at the other. */
export const streamCutBenchmark: Benchmark<StreamStand> = {
  figures: FIGURES,
  async run(stand, { say, report }) {
    const { kit, hands } = stand;
    const bindings = await kit.bindings();
    const openModel = await modelStreams(stand);
    const cuts: Record<"model" | "tunnel", number[]> = { model: [], tunnel: [] };
    for (let n = 0; n < SESSIONS; n += 1) {
      const hand = await hands.hand({ networking: ANYWHERE, models: [MODEL] });
      const { token } = await kit.lease(hand.sessionId, 1n);
      const [model, tunnel] = await Promise.all([openModel(token), openTunnel(stand, hand)]);
      const askedAt = performance.now();
      const [modelMs, tunnelMs] = await Promise.all([
        untilCut(model.cut, askedAt, BOUND_MS),
        untilCut(tunnel.cut, askedAt, BOUND_MS),
        bindings.endBinding({ sessionId: hand.sessionId }),
      ]);
      cuts.model.push(modelMs);
      cuts.tunnel.push(tunnelMs);
      await until(async () => (await endings(kit, hand)).length === 2, "the outcomes of two streams");
      for (const ending of await endings(kit, hand)) {
        if (ending !== "outcome session_ended") throw new Error(`a stream's record says "${ending}"`);
      }
    }
    for (const [name, ms] of Object.entries(cuts)) {
      const spread = [0.5, 0.99, 1].map((q) => quantile(ms, q).toFixed(1)).join(" / ");
      say(`stream_cut, ${name}: ${spread} ms (median / p99 / most)`);
    }
    const all = [...cuts.model, ...cuts.tunnel];
    reportQuantiles(report, FIGURES, "s", alone(all.map((ms) => ms / 1000)));
  },
};

/** A stream that runs. */
interface Running {
  /** When whoever reads it saw that it was cut; NaN when it came to its own end. */
  readonly cut: Promise<number>;
}

/** Opens streamed answers at the other replica's model door; each runs once its first bytes are there. */
async function modelStreams({ kit, other }: StreamStand): Promise<(token: string) => Promise<Running>> {
  const { fetch } = await kit.door();
  const messages = [{ role: "user", content: "scenario: slow ms=60000" }];
  const body = JSON.stringify({ ...HELLO, max_tokens: 100_000, stream: true, messages });
  return async (token) => {
    const headers = { ...PLAIN, authorization: `Bearer ${token}` };
    const url = `https://${kit.doorAddress(other)}/v1/messages`;
    const answer = await fetch(url, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`the model door answered ${answer.status}`);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const drain = async () => {
      while (!(await reader.read()).done);
    };
    const cut = drain().then(
      () => Number.NaN,
      () => performance.now(),
    );
    return { cut };
  };
}

/** Opens a tunnel by CONNECT at the other replica's egress door; it runs once its answer's first bytes are there. */
async function openTunnel({ endless }: StreamStand, hand: TestHand): Promise<Running> {
  const way = await connectFrom(hand, `localhost:${endless.port}`);
  if ("refused" in way) throw new Error(`the egress door refused: ${way.refused.reason}`);
  const socket = connect({ socket: way.socket, servername: "localhost", ca: endless.ca });
  const cut = new Promise<number>((resolve) => {
    socket.once("close", () => resolve(performance.now()));
  });
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(socket, "data", { signal: AbortSignal.timeout(OPEN_MS) });
  socket.on("error", () => {}).resume();
  return { cut };
}

async function endings(kit: ProxyKit, { sessionId }: TestHand): Promise<string[]> {
  return briefly(await kit.records(sessionId)).filter((record) => record.startsWith("outcome"));
}
