import { loadConfig } from "../common/config/load-config.ts";
import { readBootstrap } from "../common/config/read-bootstrap.ts";
import { loadContracts } from "../common/grpc/contracts.ts";
import { createClient } from "../common/grpc/create-client.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { BindingServiceService } from "../gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { Preview } from "../gen/ganglion/session/v1/session_service.ts";
import { Role } from "../gen/ganglion/types/v1/access.ts";
import { Event } from "../gen/ganglion/types/v1/event.ts";
import { ProxyBindings } from "./clients/proxy-bindings.ts";
import { ReplicaPreviews } from "./clients/replica-previews.ts";
import { sessionFields } from "./config.ts";
import { bytesOf, combinedEffect } from "./domain/append.ts";
import { Feeds } from "./live/feeds.ts";
import { HintChannel, type Runnable } from "./live/hint-channel.ts";
import { Housekeeping } from "./live/housekeeping.ts";
import { RunnableMonitor } from "./live/runnable-monitor.ts";
import { advertisedAddress } from "./previews/advertised-address.ts";
import { Publications } from "./previews/publications.ts";
import { RemotePreviews } from "./previews/remote-previews.ts";
import { agentService } from "./rpc/agent-service.ts";
import { apiKeyService } from "./rpc/api-key-service.ts";
import type { Deps } from "./rpc/deps.ts";
import { environmentService } from "./rpc/environment-service.ts";
import { loadEventRules } from "./rpc/load-event-rules.ts";
import { sessionService } from "./rpc/session-service.ts";
import { PgAgentStore } from "./store/agent-store.ts";
import { PgApiKeyStore } from "./store/api-key-store.ts";
import type { Fresh } from "./store/append-store.ts";
import { PgCheckpointStore } from "./store/checkpoint-store.ts";
import { connectionSource } from "./store/connection-source.ts";
import { Database } from "./store/database.ts";
import { PgEnvironmentStore } from "./store/environment-store.ts";
import { decodeFreshEvents, encodeNewEvent } from "./store/event-codec.ts";
import { PgForkStore } from "./store/fork-store.ts";
import { PgLeaseStore } from "./store/lease-store.ts";
import { PgLogStore } from "./store/log-store.ts";
import { PgPayloadStore } from "./store/payload-store.ts";
import { PgPreviewPlaces } from "./store/preview-places.ts";
import { PgRequestIds } from "./store/request-ids.ts";
import { PgSessionStore } from "./store/session-store.ts";

const config = loadConfig("session", sessionFields);
const log = createLogger(
  { service: "session", instance: config.GANGLION_INSTANCE },
  config.GANGLION_LOG_LEVEL,
);
const tls = new TlsBundle(config.GANGLION_TLS_DIR);
const login =
  config.GANGLION_BOOTSTRAP_FD === undefined
    ? undefined
    : readBootstrap(config.GANGLION_BOOTSTRAP_FD).postgres;
const source = connectionSource(
  {
    host: config.PGHOST,
    port: config.PGPORT,
    database: config.PGDATABASE,
    user: login?.user ?? config.PGUSER,
    password: login?.password,
    caPem: login?.ca_pem,
  },
  tls,
);
const database = new Database(source, config.GANGLION_DB_POOL_SIZE);
const actor = { role: Role.ROLE_SESSION, subject: tls.identity().uri };

// About what the service's own events take.
const ENVELOPE_BYTES = 512;
const hint = (runnableNow: Runnable) => {
  if (runnableNow !== "no") runnable.hint(runnableNow === "held");
};
const announce = (sessionId: string, isRunnable: boolean, event?: Event) => {
  const runnableNow = isRunnable ? "free" : "no";
  if (event) feeds.offer(sessionId, () => [event], ENVELOPE_BYTES);
  else feeds.wake(sessionId);
  hint(runnableNow);
  hints.send({ sessionId, runnable: runnableNow });
};
const onAppended = (fresh: Fresh) => {
  const { sessionId, events } = fresh.append;
  const effect = combinedEffect(events);
  const isRunnable = effect.runnable === true;
  const runnableNow = !isRunnable ? "no" : fresh.isHeld ? "held" : "free";
  hint(runnableNow);
  // The end of a session ends its watches, which is the reader's to do.
  if (effect.status === "terminated") feeds.wake(sessionId);
  else feeds.offer(sessionId, () => decodeFreshEvents(fresh), bytesOf(events) / events.length);
  hints.send({ sessionId, runnable: runnableNow });
};
const logStore = new PgLogStore(database, onAppended);
const leases = new PgLeaseStore(database, config.GANGLION_HEARTBEAT_TTL_MS, {
  actor,
  acquired: (owner, epoch, isTakeover) =>
    encodeNewEvent(
      Event.fromPartial({ body: { $case: "ganglionLeaseAcquired", value: { owner, epoch, isTakeover } } }),
      "ganglion.lease_acquired",
    ),
});
const hints: HintChannel = new HintChannel(
  source,
  {
    onHint: ({ sessionId, runnable: runnableNow }) => {
      feeds.wake(sessionId);
      hint(runnableNow);
    },
    onPublished: (sessionId, address) => remotePreviews.published(sessionId, address),
    onGap: () => {
      feeds.wakeAll();
      remotePreviews.gap();
      runnable.hint();
    },
  },
  log,
);
const feeds: Feeds = new Feeds(logStore, () => hints.isConnected);
const runnable: RunnableMonitor = new RunnableMonitor(leases, config.GANGLION_HEARTBEAT_TTL_MS);
const bindings = createClient(BindingServiceService, config.GANGLION_PROXY_ADDR, tls, "mcp-proxy");

const places = new PgPreviewPlaces(database);
const replicas = new ReplicaPreviews(tls);
// Known once the server listens.
let here: string | undefined;
const previewsHere = {
  places,
  address: () => here,
  deliver: (sessionId: string, preview: Preview) => feeds.preview(sessionId, preview),
  log,
};
const publications = new Publications({
  ...previewsHere,
  tell: (sessionId, address) => hints.sendPublished(sessionId, address),
});
const remotePreviews: RemotePreviews = new RemotePreviews({
  ...previewsHere,
  subscribe: (address, sessionId, signal) => replicas.subscribe(address, sessionId, signal),
});

const apiKeys = new PgApiKeyStore(database);
const payloads = new PgPayloadStore(database);
const sessions = new PgSessionStore(database, actor);
const housekeeping = new Housekeeping(payloads, log);

const deps: Deps = {
  log: logStore,
  sessions,
  forks: new PgForkStore(database, sessions, actor),
  leases,
  payloads,
  checkpoints: new PgCheckpointStore(database),
  agents: new PgAgentStore(database),
  environments: new PgEnvironmentStore(database),
  apiKeys,
  workspaces: apiKeys,
  requestIds: new PgRequestIds(database),
  bindings: new ProxyBindings(bindings),
  feeds,
  publications,
  remotePreviews,
  runnable,
  prices: config.GANGLION_MODEL_PRICES_FILE,
  rules: loadEventRules(loadContracts(config.GANGLION_IMAGE)),
  actor,
  heartbeatTtlMs: config.GANGLION_HEARTBEAT_TTL_MS,
  quietMs: config.GANGLION_WATCH_QUIET_MS,
  announce,
};

hints.start();
const server = await startServer({
  service: "session",
  instance: config.GANGLION_INSTANCE,
  listen: config.GANGLION_LISTEN,
  adminListen: config.GANGLION_ADMIN_LISTEN,
  image: config.GANGLION_IMAGE,
  reflection: config.GANGLION_REFLECTION,
  drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
  tls,
  log,
  implementations: [sessionService(deps), agentService(deps), environmentService(deps), apiKeyService(deps)],
  readiness: async () => [{ name: "postgres", ok: await database.isReachable() }],
  onStopped: async () => {
    feeds.close();
    remotePreviews.close();
    replicas.close();
    runnable.close();
    housekeeping.close();
    bindings.close();
    await Promise.all([hints.close(), database.close()]);
    tls.close();
  },
});
here = advertisedAddress(config.GANGLION_ADVERTISE_ADDR, server.address);
if (here === undefined)
  log.warn("no address of this replica is known to others: previews stay where they arrive");
