import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { EXIT_CONFIG, loadConfig } from "../common/config/load-config.ts";
import { createClient } from "../common/grpc/create-client.ts";
import { implement, unary } from "../common/grpc/handlers.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import type { ReadinessPart } from "../common/telemetry/admin-server.ts";
import { createMetrics } from "../common/telemetry/metrics.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { BindingServiceService } from "../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { SandboxServiceService } from "../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SessionServiceService } from "../gen/ganglion/session/v1/session_service.ts";
import { ProxyHands } from "./clients/proxy-hands.ts";
import { SessionLeaseSource } from "./clients/session-lease-source.ts";
import { sandboxFields } from "./config.ts";
import { Executions } from "./domain/executions.ts";
import { HandRegistry } from "./domain/hand-registry.ts";
import { LeaseGuard } from "./domain/lease-guard.ts";
import { BubblewrapDriver } from "./drivers/bubblewrap/bubblewrap-driver.ts";
import { ProxyDialer } from "./egress/proxy-dialer.ts";
import { ProxyWaysOut } from "./egress/ways-out.ts";
import { FileJournal } from "./journal/file-journal.ts";
import { holdFolder } from "./journal/hold-folder.ts";
import { refuseRoot } from "./refuse-root.ts";
import { cancelExecution } from "./rpc/cancel-execution.ts";
import { execute } from "./rpc/execute.ts";
import { getExecution } from "./rpc/get-execution.ts";
import { listHands } from "./rpc/list-hands.ts";
import { provision } from "./rpc/provision.ts";
import type { SandboxDeps } from "./rpc/sandbox-deps.ts";
import { terminate } from "./rpc/terminate.ts";
import { createSandboxMetrics } from "./sandbox-metrics.ts";

const MIB = 1024 ** 2;
const REAP_EVERY_MS = 10_000;
/** How soon what a session left running is gone after its end. */
const LOOK_FOR_ENDED_MS = 1_000;

const config = loadConfig("sandbox", sandboxFields);
refuseRoot();
const identity = { service: "sandbox", instance: config.GANGLION_INSTANCE };
const log = createLogger(identity, config.GANGLION_LOG_LEVEL);
const folder = config.GANGLION_DATA_DIR;
mkdirSync(folder, { recursive: true });
// Hands' users pass through to their own folders, and can list nothing.
chmodSync(folder, 0o711);
const hold = await holdFolder(folder);

const journal = await FileJournal.open({
  folder: join(folder, "journal"),
  retentionMs: config.GANGLION_JOURNAL_RETENTION_MS,
  compactBytes: config.GANGLION_JOURNAL_COMPACT_BYTES,
  maxBytes: 1024 * MIB,
  now: Date.now,
});
const driver = new BubblewrapDriver({
  folder: join(folder, "bubblewrap"),
  nodeBinary: config.GANGLION_NODE,
  requireOwnIds: config.GANGLION_HAND_UIDS === "required",
  cgroupFolders: (config.GANGLION_CGROUP_ROOT ?? "").split(",").filter((part) => part !== ""),
});
let driverProblem = await startDriver();

const tls = new TlsBundle(config.GANGLION_TLS_DIR);
const proxy = connectProxy();
const hands = new HandRegistry({
  driver,
  journal,
  waysOut: proxy?.waysOut,
  maxHands: config.GANGLION_MAX_HANDS,
  idleTtlMs: config.GANGLION_HAND_IDLE_TTL_MS,
  now: Date.now,
  onEvent: ({ message, handId, sessionId, cause }) =>
    log[cause === undefined ? "info" : "warn"](
      { hand_id: handId, session_id: sessionId, err: cause },
      message,
    ),
});
const sessions = createClient(SessionServiceService, config.GANGLION_SESSION_ADDR, tls, "session");
const leases = new SessionLeaseSource(sessions);
const executions = new Executions({ hands, journal, now: Date.now });
const metrics = createMetrics(identity.service, identity.instance);
const deps: SandboxDeps = {
  leases: new LeaseGuard(journal, leases),
  hands,
  executions,
  metrics: createSandboxMetrics(metrics.registry, {
    liveHands: () => hands.liveCount,
    runningCalls: () => executions.runningCount,
  }),
  offer: () => ({
    driver: driver.name,
    host: tls.identity().uri,
    tools: driver.tools,
    unenforcedLimits: driver.capabilities().unenforcedLimits,
  }),
  defaultResources: {
    memoryBytes: config.GANGLION_HAND_MEMORY_MIB * MIB,
    cpuMillis: config.GANGLION_HAND_CPU_MILLIS,
    maxProcesses: config.GANGLION_HAND_PROCESSES,
    diskBytes: config.GANGLION_HAND_DISK_MIB * MIB,
  },
};
const reaper = setInterval(
  () => {
    hands.reapIdle().catch((error: unknown) => log.error({ err: error }, "idle hands could not be ended"));
  },
  Math.min(REAP_EVERY_MS, config.GANGLION_HAND_IDLE_TTL_MS),
);

const hasEnded = async (sessionId: string): Promise<boolean> => {
  const lease = await leases.getLease(sessionId, AbortSignal.timeout(LOOK_FOR_ENDED_MS));
  return lease === undefined || lease.isEnded;
};
const endReaper = setInterval(() => {
  hands
    .endHandsOf((sessionId) => hasEnded(sessionId).catch(() => false))
    .catch((error: unknown) => log.error({ err: error }, "hands of ended sessions could not be ended"));
}, LOOK_FOR_ENDED_MS);

await startServer({
  ...identity,
  listen: config.GANGLION_LISTEN,
  adminListen: config.GANGLION_ADMIN_LISTEN,
  image: config.GANGLION_IMAGE,
  log,
  metrics,
  logLevel: config.GANGLION_LOG_LEVEL,
  reflection: config.GANGLION_REFLECTION,
  drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
  tls,
  implementations: [
    implement(SandboxServiceService, {
      provision: unary((request, ctx) => provision(request, ctx, deps)),
      execute: unary((request, ctx) => execute(request, ctx, deps)),
      cancelExecution: unary((request, ctx) => cancelExecution(request, ctx, deps)),
      getExecution: unary((request, ctx) => getExecution(request, ctx, deps)),
      listHands: unary((request, ctx) => listHands(request, ctx, deps)),
      terminate: unary((request, ctx) => terminate(request, ctx, deps)),
    }),
  ],
  readiness,
  onStopped: async () => {
    clearInterval(reaper);
    clearInterval(endReaper);
    await hands.close();
    await journal.close();
    sessions.close();
    proxy?.close();
    hold.close();
  },
});

/** What hands need of mcp-proxy; undefined where they reach nothing. */
function connectProxy(): { waysOut: ProxyWaysOut; close: () => void } | undefined {
  const { GANGLION_PROXY_ADDR: addresses, GANGLION_PROXY_EGRESS_ADDR: doors } = config;
  if (!addresses && !doors) return undefined;
  if (!addresses || !doors) {
    process.stderr.write("sandbox: GANGLION_PROXY_ADDR and GANGLION_PROXY_EGRESS_ADDR go together\n");
    process.exit(EXIT_CONFIG);
  }
  const client = createClient(BindingServiceService, addresses, tls, "mcp-proxy");
  const waysOut = new ProxyWaysOut(new ProxyHands(client), {
    dialer: new ProxyDialer(doors, tls),
    limits: {
      perHand: config.GANGLION_HAND_CONNECTIONS,
      total: config.GANGLION_EGRESS_CONNECTIONS,
      idleMs: config.GANGLION_EGRESS_IDLE_MS,
    },
    open: { count: 0 },
  });
  return { waysOut, close: () => client.close() };
}

/** A host that cannot make hands still answers for those that ran: it starts, and says what is missing. */
async function startDriver(): Promise<string | undefined> {
  try {
    await driver.start();
    log.info({ driver: driver.name, ...driver.capabilities() }, "hands can be made");
    return undefined;
  } catch (error) {
    log.error({ err: error }, "hands cannot be made on this host");
    return (error as Error).message;
  }
}

async function readiness(): Promise<ReadinessPart[]> {
  if (driverProblem !== undefined) driverProblem = await startDriver();
  const { perHandUid, sharedUidReason, cgroups } = driver.capabilities();
  return [
    { name: "journal", ok: journal.isWritable },
    { name: "driver", ok: driverProblem === undefined, detail: driverProblem ?? driver.name },
    { name: "per_hand_uid", ok: true, detail: perHandUid ? "on" : `off: ${sharedUidReason}` },
    {
      name: "cgroups",
      ok: true,
      detail: cgroups ? "on" : "off: memory and processor limits are not enforced",
    },
  ];
}
