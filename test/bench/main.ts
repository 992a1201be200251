// `make bench`: one JSON object a line on standard output, everything else on standard error. ONLY=<prefix> picks.
// Ends with 0 only if every picked figure was measured.
import { appendBenchmark } from "./log/append.ts";
import { appendLatencyBenchmark } from "./log/append-latency.ts";
import { sliceBenchmark } from "./log/slice.ts";
import { tailBenchmark } from "./log/tail.ts";
import { watchersBenchmark } from "./log/watchers.ts";
import { executeBenchmark } from "./mesh/execute.ts";
import { idleBenchmark } from "./mesh/idle.ts";
import { rssBenchmark } from "./mesh/rss.ts";
import { stepBenchmark } from "./mesh/step.ts";
import { takeoverBenchmark } from "./mesh/takeover.ts";
import { ttftBenchmark } from "./mesh/ttft.ts";
import { upBenchmark } from "./mesh/up.ts";
import { wakeBenchmark } from "./mesh/wake.ts";
import { auditBenchmark, startAuditStand } from "./proxy/audit.ts";
import { credentialBenchmark, mcpCallBenchmark, modelRouteBenchmark, startCallStand } from "./proxy/calls.ts";
import { egressBenchmark, startEgressStand } from "./proxy/egress.ts";
import { revokeBenchmark, startReplicaStand } from "./proxy/revoke.ts";
import { scanBenchmark } from "./proxy/scan.ts";
import { startStreamStand, streamCutBenchmark } from "./proxy/stream-cut.ts";
import { CleanUps } from "./report/clean-ups.ts";
import { pickFigures } from "./report/pick-figures.ts";
import { defineSuite, runSuites, type Suite } from "./report/run-suites.ts";
import { startLogStand } from "./stands/log-stand.ts";
import { startMeshStand } from "./stands/mesh-stand.ts";

const USAGE = 64;
const say = (line: string): void => void process.stderr.write(`${line}\n`);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const SUITES: Suite[] = [
  defineSuite(startLogStand, [
    appendBenchmark({ figure: "append_c1_ratio", callers: 1, batch: 1 }),
    appendBenchmark({ figure: "append_c64_ratio", callers: 64, batch: 1 }),
    appendBenchmark({ figure: "append_b16_ratio", callers: 64, batch: 16 }),
    appendBenchmark({ figure: "append_b16_c1_ratio", callers: 1, batch: 16 }),
    appendLatencyBenchmark,
    tailBenchmark,
    watchersBenchmark,
    // Last: the log of a million events is in the way of nobody then.
    sliceBenchmark,
  ]),
  defineSuite(startAuditStand, [auditBenchmark]),
  defineSuite(startEgressStand, [egressBenchmark]),
  defineSuite(startCallStand, [mcpCallBenchmark, modelRouteBenchmark, credentialBenchmark]),
  defineSuite(startReplicaStand, [revokeBenchmark]),
  defineSuite(startStreamStand, [streamCutBenchmark]),
  defineSuite(async () => ({}), [scanBenchmark]),
  // Memory first: the mesh is idle still.
  defineSuite(startMeshStand, [rssBenchmark, executeBenchmark, ttftBenchmark, stepBenchmark]),
  // Each on a mesh of its own: long logs, many sessions and dead harnesses are in the way of nobody.
  defineSuite(startMeshStand, [wakeBenchmark]),
  defineSuite(startMeshStand, [idleBenchmark]),
  defineSuite(startMeshStand, [takeoverBenchmark]),
  defineSuite(async (cleanUps) => ({ cleanUps }), [upBenchmark]),
];

const names = SUITES.flatMap(({ figures }) => figures);
const prefix = process.env.ONLY ?? "";
const picked = pickFigures(names, prefix);
if (picked.length === 0) {
  say(`no figure begins with "${prefix}"; there are: ${names.join(", ")}`);
  process.exit(USAGE);
}
const cleanUps = new CleanUps((error) => say(`cleaning up: ${String(error)}`));
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => void cleanUps.run().then(() => process.exit(code)));
}
const problems = await runSuites(SUITES, new Set(picked), { say, print }, cleanUps);
for (const problem of problems) say(`failed: ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);
