import { fork } from "node:child_process";
import { once } from "node:events";
import { request as httpsRequest } from "node:https";
import { connect } from "node:tls";
import { connectFrom, HandKit, type TestHand } from "../../contract/mcp-proxy/hand-kit.ts";
import { ProxyKit } from "../../contract/mcp-proxy/proxy-kit.ts";
import { TestCa } from "../../kit/ca.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";

const MEGABYTES = 64;
const WARM_UP = 2;
const PAIRS = 11;
const SERVER = new URL("./bulk-server.ts", import.meta.url);

/** mcp-proxy with a hand that may reach a server of large files, in plain and with a credential. */
export interface EgressStand {
  readonly port: number;
  readonly authorityPem: string;
  readonly blind: TestHand;
  readonly searched: TestHand;
}

/** startEgressStand starts PostgreSQL, the development vault, mcp-proxy and the server. */
export async function startEgressStand(
  cleanUps: CleanUps,
  say: (line: string) => void,
): Promise<EgressStand> {
  say("starting mcp-proxy and a server of large files");
  const ca = await TestCa.create();
  cleanUps.add(() => ca.remove());
  const folder = await ca.directory("vault", "bulk");
  const server = fork(SERVER, [folder, String(MEGABYTES)]);
  cleanUps.add(() => void server.kill("SIGKILL"));
  const [port] = (await once(server, "message")) as [number];
  const kit = await ProxyKit.start({
    GANGLION_PROXY_ALLOW_HTTP_HOSTS: `localhost:${port}`,
    GANGLION_UPSTREAM_CA_FILE: `${folder}/ca.pem`,
  });
  cleanUps.add(() => kit.stop());
  const hands = new HandKit(kit);
  cleanUps.add(() => hands.stop());
  const networking = {
    type: 1 as const,
    allowedHosts: [],
    allowMcpServers: false,
    allowPackageManagers: false,
  };
  const blind = await hands.hand({ networking });
  const variables = [{ name: "KEY", secret: "sk-0123456789abcdefghijklmnopqrstuvwxyz" }];
  const searched = await hands.hand({ networking, variables });
  return { port, authorityPem: ca.authority.certPem, blind, searched };
}

/** A download over the egress door, held against the same download without it. */
export const egressBenchmark: Benchmark<EgressStand> = {
  figures: ["egress_mb_s", "egress_ratio"],
  async run(stand, { say, report }) {
    const { port, authorityPem, blind, searched } = stand;
    const pairs: { ours: number; baseline: number; searched: number }[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n += 1) {
      const ours = await rate(() => download(port, authorityPem, blind));
      const baseline = await rate(() => download(port, authorityPem));
      const inside = await rate(() => download(port, searched.setup.egressCaPem, searched));
      if (n >= WARM_UP) pairs.push({ ours, baseline, searched: inside });
    }
    const value = median(pairs.map(({ ours }) => ours));
    const baseline = median(pairs.map((pair) => pair.baseline));
    const ratio = median(pairs.map((pair) => pair.ours / pair.baseline));
    report({ name: "egress_mb_s", value, unit: "MB/s", baseline, ratio, n: pairs.length });
    report({
      name: "egress_ratio",
      value: ratio,
      unit: "ratio",
      baseline: null,
      ratio: null,
      n: pairs.length,
    });
    const found = median(pairs.map((pair) => pair.searched));
    say(`with a credential, TLS ended and the answer searched: ${found.toFixed(1)} MB/s`);
  },
};

/** Megabytes of 1,000,000 bytes a second. */
async function rate(work: () => Promise<number>): Promise<number> {
  const begun = performance.now();
  const bytes = await work();
  if (bytes !== MEGABYTES * 1_000_000) throw new Error(`a download ended after ${bytes} bytes`);
  return bytes / 1000 / (performance.now() - begun);
}

/** Downloads once, with a connection of its own, as a program in a hand does; answers how many bytes came. */
async function download(port: number, ca: string, hand?: TestHand): Promise<number> {
  const way = hand && (await connectFrom(hand, `localhost:${port}`));
  if (way && "refused" in way) throw new Error(`the door refused: ${way.refused.reason}`);
  const socket = connect({
    ...(way ? { socket: way.socket } : { host: "127.0.0.1", port }),
    servername: "localhost",
    ca,
  });
  const request = httpsRequest({ createConnection: () => socket, headers: { host: `localhost:${port}` } });
  request.end();
  const [response] = await once(request, "response");
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  await once(response, "end");
  socket.destroy();
  return bytes;
}
