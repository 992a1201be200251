import type { ServerHttp2Session } from "node:http2";
import { Server, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { createLogger, type Logger, type LogLevel, switchLevelOnSignal } from "../log/create-logger.ts";
import { type AdminServer, type ReadinessPart, startAdminServer } from "../telemetry/admin-server.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { createTracing, type Tracing } from "../telemetry/tracing.ts";
import { type ClientCertificates, createServerCredentials } from "../tls/server-credentials.ts";
import type { TlsBundle } from "../tls/tls-bundle.ts";
import { draining } from "./active-call.ts";
import { type Contracts, loadContracts, type MethodContract } from "./contracts.ts";
import type { Implementation, MethodDefinition } from "./handlers.ts";
import { Health } from "./health.ts";
import { MAX_MESSAGE_BYTES, safeDecoder } from "./message-codec.ts";
import { type PrincipalResolver, resolveMeshPrincipal } from "./principal.ts";
import { installLifecycle } from "./process-lifecycle.ts";
import { addReflection } from "./reflection.ts";
import { transportHandler } from "./run-call.ts";
import type { ServerState } from "./server-state.ts";

const HOUR_MS = 3_600_000;
// What a connection may have on its way to a server. Each of its calls has HTTP/2's 64 KiB; sharing that among all of
// them would make callers of one connection take turns.
const CONNECTION_WINDOW_BYTES = MAX_MESSAGE_BYTES;

/** What a server is started with. */
export interface ServerConfig {
  /** Service name, for example "session": log field, metric label and ErrorInfo domain. */
  service: string;
  instance: string;
  /** host:port; port 0 = any. */
  listen: string;
  /** host:port of the admin server; undefined = none. */
  adminListen?: string | undefined;
  tls: TlsBundle;
  /** Path of the buf image. */
  image: string;
  implementations: Implementation[];
  /** "verify-if-given" for a public door that also knows API keys. */
  clientCertificates?: ClientCertificates;
  /** Who calls; the default believes certificates and, behind the gateway, what it says. */
  resolvePrincipal?: PrincipalResolver;
  /** Parts this process needs; asked by /readyz. */
  readiness?: () => Promise<ReadinessPart[]>;
  /** Runs when draining begins, before streams are ended: stop taking new work. */
  onDrain?: () => Promise<void> | void;
  /** Runs after the last call: close pools and clients. */
  onStopped?: () => Promise<void> | void;
  /** Reflection, to operators only. Default true. */
  reflection?: boolean;
  logLevel?: LogLevel;
  /** Handed in when a service already made them (it needs them before the server exists). */
  log?: Logger;
  metrics?: Metrics;
  tracing?: Tracing;
  defaultDeadlineMs?: number;
  slowConsumerMs?: number;
  drainGraceMs?: number;
  maxConnectionAgeMs?: number;
  /** Per connection. Default 10,000. */
  maxConcurrentStreams?: number;
  /** Ping interval and how long a ping may stay unanswered. Default 30 s and 10 s. */
  keepaliveMs?: number;
  keepaliveTimeoutMs?: number;
  /** Signals and escaped errors end the process. Default true; false in tests that start servers in their own process. */
  ownsProcess?: boolean;
}

/** A running server. */
export interface RunningServer {
  /** host:port with the port that was given. */
  address: string;
  adminAddress: string | undefined;
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
  /** NOT_SERVING, streams ended with UNAVAILABLE/DRAINING, other calls finished or forced after the grace. */
  drain: () => Promise<void>;
  /** Ends everything now. */
  force: () => void;
}

/**
 * The one way to start a service. Reads who may call what from the protos and refuses to start
 * when a method does not say so; prints one "listening" line when it is ready.
 */
export async function startServer(config: ServerConfig): Promise<RunningServer> {
  const log = config.log ?? createLogger(config, config.logLevel ?? "info");
  const contracts = loadContracts(config.image);
  const state: ServerState = {
    service: config.service,
    log,
    callLog: log.child({}, { redact: [] }),
    metrics: config.metrics ?? createMetrics(config.service, config.instance),
    tracing: config.tracing ?? createTracing(config.service, config.instance),
    resolvePrincipal: config.resolvePrincipal ?? resolveMeshPrincipal,
    defaultDeadlineMs: config.defaultDeadlineMs ?? 30_000,
    slowConsumerMs: config.slowConsumerMs ?? 30_000,
    active: new Set(),
    draining: false,
  };

  const server = new Server(serverOptions(config));
  const names = config.implementations.map((implementation) => serviceNameOf(implementation));
  for (const implementation of config.implementations)
    addImplementation(server, state, contracts, implementation);
  const health = new Health(names);
  addOpenImplementation(server, state, health.implementation());
  if (config.reflection ?? true) {
    addReflection(server, state, contracts, [...names, "grpc.health.v1.Health"]);
  }

  const credentials = createServerCredentials(config.tls, config.clientCertificates);
  const port = await bind(server, config.listen, credentials);
  for (const listener of http2ServersOf(server)) {
    logRefusedHandshakes(listener, log);
    widenConnections(listener);
  }
  const admin = await startAdmin(config, state);
  const stop = createStopper(config, { server, state, health, admin, dispose: () => credentials.dispose() });
  if (config.ownsProcess ?? true) {
    installLifecycle(log, stop);
    switchLevelOnSignal(log);
  }
  health.setServing(true);
  const address = `${config.listen.slice(0, config.listen.lastIndexOf(":"))}:${port}`;
  // Whoever started the process waits for this line, whatever the level.
  log
    .child({}, { level: "info" })
    .info({ addr: address, ...(admin ? { admin_addr: admin.address } : {}) }, "listening");
  return {
    address,
    adminAddress: admin?.address,
    log,
    metrics: state.metrics,
    tracing: state.tracing,
    ...stop,
  };
}

function serverOptions(config: ServerConfig) {
  return {
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    // The gateway carries the watches of all its clients over one connection.
    "grpc.max_concurrent_streams": config.maxConcurrentStreams ?? 10_000,
    // Finds readers that vanished without a word [B130]; clients do not police a server's pings.
    "grpc.keepalive_time_ms": config.keepaliveMs ?? 30_000,
    "grpc.keepalive_timeout_ms": config.keepaliveTimeoutMs ?? 10_000,
    // New calls move to a connection made with the peer's renewed certificate; open streams go on.
    "grpc.max_connection_age_ms": config.maxConnectionAgeMs ?? HOUR_MS,
    "grpc.enable_channelz": 0,
  };
}

function addImplementation(
  server: Server,
  state: ServerState,
  contracts: Contracts,
  { definition, handlers }: Implementation,
): void {
  const missing = Object.values(definition).filter((method) => !contracts.methods.get(method.path)?.access);
  if (missing.length > 0) {
    throw new Error(
      `these methods do not say who may call them: ${missing.map((method) => method.path).join(", ")}`,
    );
  }
  register(server, state, { definition, handlers }, (path) => contracts.methods.get(path) as MethodContract);
}

/** Health answers anybody who got through TLS, and says nothing but the status. [A099] */
function addOpenImplementation(server: Server, state: ServerState, implementation: Implementation): void {
  register(server, { ...state, resolvePrincipal: anybody }, implementation, (path, method) => {
    const [service = "", name = ""] = path.slice(1).split("/");
    const kind = method.responseStream ? "server_stream" : "unary";
    return {
      path,
      service,
      method: name,
      kind,
      access: { callers: new Set([0]), idempotent: true, defaultDeadlineMs: 0 },
    };
  });
}

const anybody: PrincipalResolver = (peer) => ({
  role: 0,
  spiffeId: peer?.uri ?? "",
  instance: peer?.instance ?? "",
  workspaceId: null,
  keyId: null,
  peerSpiffeId: peer?.uri ?? "",
});

function register(
  server: Server,
  state: ServerState,
  { definition, handlers }: Implementation,
  contractOf: (path: string, method: MethodDefinition<unknown, unknown>) => MethodContract,
): void {
  const methods: Record<string, unknown> = {};
  const functions: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition)) {
    // Messages are encoded by the wrapper, which can still answer when that fails.
    methods[name] = {
      ...method,
      requestDeserialize: safeDecoder(method),
      responseSerialize: (bytes: Buffer) => bytes,
    };
    functions[name] = transportHandler(state, contractOf(method.path, method), method, handlers.get(name));
  }
  server.addService(methods as ServiceDefinition, functions as UntypedServiceImplementation);
}

function serviceNameOf({ definition }: Implementation): string {
  const [first] = Object.values(definition);
  if (!first) throw new Error("a service without methods cannot be served");
  return first.path.split("/")[1] ?? "";
}

function bind(
  server: Server,
  listen: string,
  credentials: ReturnType<typeof createServerCredentials>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(listen, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
}

// grpc-js keeps its HTTP/2 servers to itself; without them refused handshakes are merely not logged [A108], and
// connections merely narrow.
function http2ServersOf(server: Server): Iterable<NodeJS.EventEmitter> {
  return (
    (server as unknown as { http2Servers?: Map<NodeJS.EventEmitter, unknown> }).http2Servers?.keys() ?? []
  );
}

function logRefusedHandshakes(listener: NodeJS.EventEmitter, log: Logger): void {
  listener.on("tlsClientError", (error: NodeJS.ErrnoException, socket: { remoteAddress?: string }) => {
    log.warn({ peer: socket.remoteAddress, code: error.code }, "handshake refused");
  });
}

function widenConnections(listener: NodeJS.EventEmitter): void {
  listener.on("session", (session: ServerHttp2Session) =>
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES),
  );
}

async function startAdmin(config: ServerConfig, state: ServerState): Promise<AdminServer | undefined> {
  if (config.adminListen === undefined) return undefined;
  return startAdminServer({
    listen: config.adminListen,
    registry: state.metrics.registry,
    readiness: async () => {
      const own = {
        name: config.service,
        ok: !state.draining,
        ...(state.draining ? { detail: "draining" } : {}),
      };
      return [own, ...((await config.readiness?.()) ?? [])];
    },
  });
}

interface Running {
  server: Server;
  state: ServerState;
  health: Health;
  admin: AdminServer | undefined;
  dispose: () => void;
}

function createStopper(config: ServerConfig, running: Running) {
  const { server, state, health, admin } = running;
  const endCalls = (all: boolean) => {
    for (const call of [...state.active]) {
      if (all || call.isStream) call.abort(draining());
    }
  };
  const force = () => {
    endCalls(true);
    server.forceShutdown();
  };
  let stopped: Promise<void> | undefined;
  const drain = async () => {
    health.setServing(false);
    // One turn for those who watch the health to be told before their stream ends.
    await new Promise((resolve) => setImmediate(resolve));
    await config.onDrain?.();
    state.draining = true;
    // An idle open stream would hold the shutdown forever, and force would tell it CANCELLED. [M06]
    endCalls(false);
    const grace = config.drainGraceMs ?? 10_000;
    const timer = setTimeout(() => {
      state.log.warn({ calls: state.active.size }, "grace is over");
      endCalls(true);
      // One turn for the statuses to be written.
      setTimeout(() => server.forceShutdown(), 50);
    }, grace);
    await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    clearTimeout(timer);
    await config.onStopped?.();
    await state.tracing.shutdown();
    await admin?.close();
    running.dispose();
  };
  return {
    drain: () => {
      stopped ??= drain();
      return stopped;
    },
    force,
  };
}
