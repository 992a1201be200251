import { Counter } from "prom-client";
import { EXIT_CONFIG, loadConfig } from "../common/config/load-config.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { createMetrics } from "../common/telemetry/metrics.ts";
import { createTracing } from "../common/telemetry/tracing.ts";
import { createMeshFetch } from "../common/tls/mesh-fetch.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { createGrpcEventLog } from "./clients/grpc-event-log.ts";
import { createGrpcHands } from "./clients/grpc-hands.ts";
import { createGrpcLeases } from "./clients/grpc-leases.ts";
import { createGrpcMcpServers } from "./clients/grpc-mcp-servers.ts";
import { createGrpcPreviews } from "./clients/grpc-previews.ts";
import { createGrpcTokens } from "./clients/grpc-tokens.ts";
import { createServiceClients } from "./clients/service-clients.ts";
import { harnessFields } from "./config.ts";
import { rulesEvaluator } from "./domain/rules-evaluator.ts";
import { Harness } from "./driver/harness.ts";
import { loadEvaluator } from "./evaluator/load-evaluator.ts";
import { createAnthropicModel } from "./model/anthropic-model.ts";
import type { PermissionEvaluator } from "./ports/permission-evaluator.ts";
import { harnessService } from "./rpc/harness-service.ts";

const config = loadConfig("harness", harnessFields);
const evaluator = await evaluatorOf(config.GANGLION_HARNESS_EVALUATOR);
const identity = { service: "harness", instance: config.GANGLION_INSTANCE };
const logger = createLogger(identity, config.GANGLION_LOG_LEVEL);
const metrics = createMetrics(identity.service, identity.instance);
const tracing = createTracing(identity.service, identity.instance);
const tls = new TlsBundle(config.GANGLION_TLS_DIR);

const clients = createServiceClients(
  {
    session: config.GANGLION_SESSION_ADDR,
    sandbox: config.GANGLION_SANDBOX_ADDR,
    proxy: config.GANGLION_PROXY_ADDR,
  },
  tls,
  { tracing, metrics, image: config.GANGLION_IMAGE },
);
const modelDoor = createMeshFetch(tls, "mcp-proxy");
// The cache-hit share is cache_read over the sum of all three.
const inputTokens = new Counter({
  name: "ganglion_harness_input_tokens_total",
  help: "Input tokens of model requests, by where they came from",
  labelNames: ["source"],
  registers: [metrics.registry],
});
const harness = new Harness({
  leases: createGrpcLeases(clients.session),
  ports: {
    log: createGrpcEventLog(clients.session),
    model: createAnthropicModel({
      baseUrl: `https://${config.GANGLION_PROXY_HTTP_ADDR}`,
      fetch: modelDoor.fetch,
    }),
    hands: createGrpcHands(clients.sandboxAt, config.GANGLION_SANDBOX_ADDR),
    mcp: createGrpcMcpServers(clients.mcp),
    tokens: createGrpcTokens(clients.binding),
    evaluator,
    openPreviews: (lease) => createGrpcPreviews(clients.session, lease),
    countInput: (source, tokens) => inputTokens.inc({ source }, tokens),
  },
  logger,
  patience: {
    callMs: 30_000,
    retryMs: 250,
    interruptMs: 1000,
    evaluatorMs: config.GANGLION_HARNESS_EVALUATOR_MS,
  },
  maxSessions: config.GANGLION_HARNESS_MAX_SESSIONS,
  lingerMs: config.GANGLION_HARNESS_LINGER_MS,
  pollMs: config.GANGLION_HARNESS_POLL_MS,
  stopGraceMs: Math.max(0, config.GANGLION_DRAIN_GRACE_MS - 2000),
});

await startServer({
  ...identity,
  listen: config.GANGLION_LISTEN,
  adminListen: config.GANGLION_ADMIN_LISTEN,
  tls,
  image: config.GANGLION_IMAGE,
  implementations: [harnessService(harness)],
  reflection: config.GANGLION_REFLECTION,
  drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
  log: logger,
  metrics,
  tracing,
  readiness: async () => [
    harness.isAlive
      ? { name: "session", ok: true }
      : { name: "session", ok: false, detail: "no heartbeat was answered lately" },
  ],
  onDrain: () => harness.close(),
  onStopped: async () => {
    clients.close();
    await modelDoor.close();
  },
});
// Not awaited: a harness without a log waits for one, and says so by its readiness.
harness.start().then(
  () => logger.info("taking sessions"),
  (error: unknown) => logger.error({ err: error }, "the harness cannot work"),
);

async function evaluatorOf(path: string | undefined): Promise<PermissionEvaluator> {
  if (path === undefined) return rulesEvaluator;
  try {
    return await loadEvaluator(path);
  } catch (error) {
    // A harness that judged by other rules than the operator's would be worse than none.
    process.stderr.write(
      `harness: the configuration is wrong\n  GANGLION_HARNESS_EVALUATOR ${(error as Error).message}\n`,
    );
    process.exit(EXIT_CONFIG);
  }
}
