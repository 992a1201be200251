import { loadConfig } from "../common/config/load-config.ts";
import { loadContracts } from "../common/grpc/contracts.ts";
import { createClient } from "../common/grpc/create-client.ts";
import { implementSome } from "../common/grpc/handlers.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { createMetrics } from "../common/telemetry/metrics.ts";
import { createTracing } from "../common/telemetry/tracing.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { AgentServiceService } from "../gen/ganglion/agent/v1/agent_service.ts";
import { ApiKeyServiceService } from "../gen/ganglion/agent/v1/api_key_service.ts";
import { EnvironmentServiceService } from "../gen/ganglion/agent/v1/environment_service.ts";
import { AuditServiceService } from "../gen/ganglion/audit/v1/audit_service.ts";
import { HarnessServiceService } from "../gen/ganglion/harness/v1/harness_service.ts";
import { BindingServiceService } from "../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { McpProxyServiceService } from "../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolPinServiceService } from "../gen/ganglion/mcpproxy/v1/tool_pin_service.ts";
import { SandboxServiceService } from "../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SessionServiceService } from "../gen/ganglion/session/v1/session_service.ts";
import { VaultServiceService } from "../gen/ganglion/vault/v1/vault_service.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { gatewayFields } from "./config.ts";
import { StreamLimits } from "./domain/stream-limits.ts";
import { startRest } from "./rest/start-rest.ts";
import { PublicDoor } from "./rpc/public-door.ts";
import { publicServices, routesOf, type UpstreamName } from "./upstream/route-table.ts";
import { UpstreamConnection } from "./upstream/upstream-connection.ts";

const SERVICE = "gateway";
const config = loadConfig(SERVICE, gatewayFields);
const instance = config.GANGLION_INSTANCE;
const log = createLogger({ service: SERVICE, instance }, config.GANGLION_LOG_LEVEL);
const tls = new TlsBundle(config.GANGLION_TLS_DIR);
tls.on("rejected", (error) => log.warn({ err: error }, "a renewed certificate was not taken"));
const metrics = createMetrics(SERVICE, instance);
const tracing = createTracing(SERVICE, instance);
const routes = routesOf(loadContracts(config.GANGLION_IMAGE));

// Served by the own port without handlers: they make reflection and health name what the public address passes on.
const named = [
  SessionServiceService,
  AgentServiceService,
  ApiKeyServiceService,
  EnvironmentServiceService,
  VaultServiceService,
  BindingServiceService,
  McpProxyServiceService,
  ToolPinServiceService,
  AuditServiceService,
  SandboxServiceService,
  HarnessServiceService,
].filter((definition) => {
  const [first] = Object.values(definition);
  return first && publicServices(routes).includes(first.path.split("/")[1] as string);
});

const clients = { tracing, metrics, image: config.GANGLION_IMAGE };
const session = <D extends Parameters<typeof createClient>[0]>(definition: D) =>
  createClient(definition, config.GANGLION_SESSION_ADDR, tls, "session", clients);
const apiKeys = session(ApiKeyServiceService);
const authenticator = new Authenticator(async (keySha256) => {
  const { apiKey } = await apiKeys.authenticateApiKey({ keySha256 });
  return { id: apiKey?.id ?? "", workspaceId: apiKey?.workspaceId ?? "" };
});

const server = await startServer({
  service: SERVICE,
  instance,
  listen: config.GANGLION_LISTEN,
  adminListen: config.GANGLION_ADMIN_LISTEN,
  tls,
  image: config.GANGLION_IMAGE,
  implementations: named.map((definition) => implementSome(definition, {})),
  reflection: config.GANGLION_REFLECTION,
  drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
  log,
  metrics,
  tracing,
  readiness: async () => [{ name: "doors", ok: isOpen }],
  onDrain: async () => {
    await Promise.all([
      door.drain(config.GANGLION_DRAIN_GRACE_MS),
      rest.drain(config.GANGLION_DRAIN_GRACE_MS),
    ]);
  },
  onStopped: () => door.force(),
});

let isOpen = false;
const limits = new StreamLimits();
const upstreams: Record<UpstreamName, UpstreamConnection> = {
  session: new UpstreamConnection("session", config.GANGLION_SESSION_ADDR, tls),
  "mcp-proxy": new UpstreamConnection("mcp-proxy", [config.GANGLION_PROXY_ADDR], tls),
  sandbox: new UpstreamConnection("sandbox", [config.GANGLION_SANDBOX_ADDR], tls),
  harness: new UpstreamConnection("harness", config.GANGLION_HARNESS_ADDRS, tls),
  gateway: new UpstreamConnection("gateway", [server.address], tls),
};
const door = new PublicDoor({
  listen: config.GANGLION_PUBLIC_LISTEN,
  tls,
  routes,
  upstreams,
  authenticator,
  limits,
  log,
  metrics,
  tracing,
});
const rest = await startRest({
  listen: config.GANGLION_REST_LISTEN,
  authenticator,
  limits,
  sessions: session(SessionServiceService),
  agents: session(AgentServiceService),
  environments: session(EnvironmentServiceService),
  vaults: createClient(VaultServiceService, config.GANGLION_PROXY_ADDR, tls, "mcp-proxy", clients),
  log,
  metrics,
  tracing,
});
const addr = await door.listen();
isOpen = true;
log.info({ addr, rest_addr: rest.address }, "public doors are open");
