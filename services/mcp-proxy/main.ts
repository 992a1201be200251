import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "../common/config/load-config.ts";
import { readBootstrap } from "../common/config/read-bootstrap.ts";
import { createClient } from "../common/grpc/create-client.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { createMetrics } from "../common/telemetry/metrics.ts";
import { createTracing } from "../common/telemetry/tracing.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { SessionServiceService } from "../gen/ganglion/session/v1/session_service.ts";
import { countRecords } from "./audit/count-records.ts";
import { createLedger } from "./audit/ledger.ts";
import { recoverOpenRequests } from "./audit/recover.ts";
import { fields, listOf } from "./config.ts";
import type { Run } from "./domain/call-mcp-tool.ts";
import { parseDestination } from "./domain/canonical-url.ts";
import type { ModelUpstream } from "./domain/choose-model.ts";
import { LiveSessions } from "./domain/live-sessions.ts";
import { createVaults } from "./domain/manage-vaults.ts";
import { createRowMac } from "./domain/row-mac.ts";
import { serveModelDoor } from "./http/serve-model-door.ts";
import { auditService } from "./rpc/audit-service.ts";
import { bindingService } from "./rpc/binding-service.ts";
import { decodeCall, encodeCall } from "./rpc/call-codec.ts";
import { mcpProxyService } from "./rpc/mcp-proxy-service.ts";
import { vaultService } from "./rpc/vault-service.ts";
import { createAccessStore } from "./store/access-store.ts";
import { createBindingStore } from "./store/binding-store.ts";
import { createCallStore } from "./store/call-store.ts";
import { connectionConfig, createPool } from "./store/connect.ts";
import { createCredentialStore } from "./store/credential-store.ts";
import { watchFences } from "./store/fence-watch.ts";
import { beat } from "./store/replica-store.ts";
import { createVaultStore } from "./store/vault-store.ts";
import { createVaultTokenStore } from "./store/vault-token-store.ts";
import { findUsedVaults } from "./store/warm.ts";
import { createControlPlane } from "./upstream/control-plane.ts";
import { createLazyMcpCaller } from "./upstream/lazy-mcp-caller.ts";
import { createPools } from "./upstream/pools.ts";
import { createResolver } from "./upstream/resolver.ts";
import { openVault, WrongPrivileges } from "./vault/open-vault.ts";
import { BootstrapCompromised } from "./vault/proxy-login.ts";
import { startRevocationWorker } from "./vault/revocation-worker.ts";
import { createSecretReader } from "./vault/secret-reader.ts";
import { createSecretWriter } from "./vault/secret-writer.ts";
import { createSessionTokens } from "./vault/session-tokens.ts";

/** sysexits: try again later (with a new login); and: not allowed, which no restart cures. */
const EXIT_RETRY = 75;
const EXIT_NOT_ALLOWED = 77;
const BEAT_MS = 3000;
const FORGET_MS = 600_000;
const LOAD_LATER_MS = 3000;

const config = loadConfig("mcp-proxy", fields);
const writer = { instance: config.GANGLION_INSTANCE, bootId: randomUUID() };
const log = createLogger({ service: "mcp-proxy", instance: writer.instance }, config.GANGLION_LOG_LEVEL);
const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
const timers: NodeJS.Timeout[] = [];

try {
  await start();
} catch (error) {
  const isFinal = error instanceof BootstrapCompromised || error instanceof WrongPrivileges;
  log.fatal({ err: error }, error instanceof BootstrapCompromised ? "bootstrap_compromise" : "cannot start");
  process.exit(isFinal ? EXIT_NOT_ALLOWED : EXIT_RETRY);
}

async function start(): Promise<void> {
  const bootstrap =
    config.GANGLION_BOOTSTRAP_FD === undefined ? {} : readBootstrap(config.GANGLION_BOOTSTRAP_FD);
  if (!bootstrap.vault) throw new Error("no Vault login on the bootstrap descriptor");
  const tls = new TlsBundle(config.GANGLION_TLS_DIR);
  const database = {
    host: config.PGHOST,
    port: config.PGPORT,
    database: config.PGDATABASE,
    user: bootstrap.postgres?.user ?? config.PGUSER,
    ...(bootstrap.postgres ? { password: bootstrap.postgres.password } : {}),
    ...(bootstrap.postgres?.ca_pem ? { caPem: bootstrap.postgres.ca_pem } : {}),
    tls,
  };
  let onLoginLost = () => {};
  const vault = await openVault(bootstrap.vault, log, () => onLoginLost());
  const { client, mount, login, keys } = vault;
  const pool = createPool(database, warn("database connection lost"));
  await beat(pool, writer);
  timers.push(setInterval(() => void beat(pool, writer).catch(warn("heartbeat failed")), BEAT_MS));

  const mac = createRowMac(keys.macKey);
  const vaultStore = createVaultStore(pool);
  const vaults = createVaults(vaultStore, mac);
  const bindings = createBindingStore(pool);
  const vaultTokenStore = createVaultTokenStore(pool, writer);
  const tokens = createSessionTokens({
    client,
    loginToken: login.token,
    store: vaultTokenStore,
    replica: writer.instance,
  });
  const secrets = createSecretReader(client, mount, tokens);
  const metrics = createMetrics("mcp-proxy", writer.instance);
  const tracing = createTracing("mcp-proxy", writer.instance);
  const ledger = countRecords(createLedger(pool, writer), metrics.registry);
  const calls = createCallStore(pool, writer);
  const recovered = await recoverOpenRequests(pool, writer);
  timers.push(
    setInterval(() => void calls.forgetEnded().catch(warn("the journal could not be cleaned")), FORGET_MS),
  );
  if (recovered > 0) log.warn({ requests: recovered }, "closed requests that a dead process left open");
  await vaultTokenStore.queueLeftBehind();
  const revocations = startRevocationWorker({
    client,
    loginToken: login.token,
    store: vaultTokenStore,
    onFailure: warn("revocation at Vault failed, trying again"),
  });

  const controlPlane = await createControlPlane([
    config.GANGLION_LISTEN,
    config.GANGLION_PROXY_HTTP_LISTEN,
    ...(config.GANGLION_ADMIN_LISTEN ? [config.GANGLION_ADMIN_LISTEN] : []),
    ...config.GANGLION_SESSION_ADDR,
    `${config.PGHOST}:${config.PGPORT}`,
    endpointOf(bootstrap.vault.addr),
    ...config.GANGLION_PROXY_FORBIDDEN_ENDPOINTS,
  ]);
  const upstreams = modelUpstreams();
  const operatorHosts = upstreams.flatMap(({ name, destination }) =>
    name === "scripted" || destination.scheme === "http" ? [`${destination.host}:${destination.port}`] : [],
  );
  const resolve = createResolver({
    allowHttpHosts: new Set([
      ...listOf(config.GANGLION_PROXY_ALLOW_HTTP_HOSTS).map(withoutBrackets),
      ...operatorHosts,
    ]),
    isControlPlane: controlPlane.isControlPlane,
  });
  const extraCa = config.GANGLION_UPSTREAM_CA_FILE && readFileSync(config.GANGLION_UPSTREAM_CA_FILE, "utf8");
  const pools = createPools({ connectMs: 5000, headersMs: 600_000, bodyIdleMs: 600_000 }, extraCa);
  const mcp = createLazyMcpCaller(pools);
  const live = new LiveSessions();
  const running = new Map<string, Run>();
  const passage = { access: createAccessStore(pool), ledger, secrets, mac };

  const fences = watchFences({
    pool,
    connection: connectionConfig(database),
    live,
    onRaised: (sessionId) => {
      secrets.drop(sessionId);
      tokens.drop(sessionId);
      revocations.wake();
    },
    onCancel: (runKey) => running.get(runKey)?.cancel(),
    onTrouble: warn("fences cannot be watched"),
  });

  const session = createClient(SessionServiceService, config.GANGLION_SESSION_ADDR, tls, "session", {
    tracing,
    metrics,
    timeoutMs: 4000,
  });
  const door = await serveModelDoor(
    {
      tls,
      listen: config.GANGLION_PROXY_HTTP_LISTEN,
      extraHosts: listOf(config.GANGLION_PROXY_HTTP_HOSTS),
    },
    { ...passage, upstreams, resolve, pools, live, log, tracing },
  );
  await controlPlane.add(door.address);
  log.info({ http_addr: door.address }, "model door listening");

  const server = await startServer({
    service: "mcp-proxy",
    instance: writer.instance,
    listen: config.GANGLION_LISTEN,
    adminListen: config.GANGLION_ADMIN_LISTEN,
    image: config.GANGLION_IMAGE,
    reflection: config.GANGLION_REFLECTION,
    drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
    log,
    metrics,
    tracing,
    tls,
    implementations: [
      bindingService({
        bindings,
        vaultStore,
        vaults,
        mac,
        getLease: async (sessionId, ctx) => {
          const { lease } = await session.getLease({ sessionId }, { parent: ctx });
          return lease && { workspaceId: lease.workspaceId, epoch: lease.epoch, owner: lease.owner };
        },
        prepare: (sessionId) => {
          const found = findUsedVaults(pool, sessionId);
          found.catch(() => {});
          return ({ workspaceId }, epoch) => {
            const owner = { sessionId, workspaceId, epoch };
            found
              .then((used) => Promise.all(used.map((vaultId) => tokens.get(owner, vaultId))))
              .catch(warn("session could not be prepared"));
          };
        },
      }),
      vaultService({
        vaults,
        vaultStore,
        store: createCredentialStore(pool),
        writer: createSecretWriter(client, mount, login.token),
        seal: keys.sealingKey,
        mac,
        sealingKey: keys.sealingKey,
        modelUrls: upstreams.map(({ destination }) => destination.url),
      }),
      mcpProxyService({
        ...passage,
        mcp,
        resolve,
        journal: calls,
        live,
        encode: encodeCall,
        decode: decodeCall,
        running,
        wait: (ms, signal) => sleep(ms, undefined, { signal }),
      }),
      auditService(pool),
    ],
    readiness: async () => [
      await part("postgres", pool.query("SELECT 1")),
      await part("vault", client.read("auth/token/lookup-self", login.token())),
    ],
    onDrain: () => door.drain(),
    onStopped: async () => {
      await door.close(config.GANGLION_DRAIN_GRACE_MS);
      await Promise.race([
        Promise.allSettled([...running.values()].map((run) => run.promise)),
        sleep(config.GANGLION_DRAIN_GRACE_MS, undefined, { ref: false }),
      ]);
      for (const timer of timers) clearInterval(timer);
      await fences.close();
      await vaultTokenStore.queueOwn().catch(warn("own Vault tokens could not be queued"));
      await revocations.drain();
      await revocations.close();
      await mcp.close();
      await pools.close();
      login.close();
      session.close();
      await client.close();
      await pool.end();
      tls.close();
    },
  });
  await controlPlane.add(server.address);
  if (server.adminAddress) await controlPlane.add(server.adminAddress);
  // While nobody waits: neither for this start nor for a first call.
  setTimeout(() => void mcp.load(), LOAD_LATER_MS).unref();
  onLoginLost = () => {
    const stop = () => process.exit(EXIT_RETRY);
    setTimeout(stop, 5000).unref();
    server.drain().then(stop, stop);
  };
}

function modelUpstreams(): ModelUpstream[] {
  const found: [ModelUpstream["name"], string | undefined][] = [
    ["anthropic", config.GANGLION_MODEL_URL],
    ["scripted", config.GANGLION_SCRIPTED_MODEL_URL],
  ];
  return found.flatMap(([name, text]) => {
    if (text === undefined) return [];
    const destination = parseDestination(text);
    if (!destination) throw new Error(`the ${name} model's URL is not in plain form`);
    return [{ name, destination }];
  });
}

/** IPv6 addresses are kept as they are dialled. */
function withoutBrackets(host: string): string {
  return host.replace(/[[\]]/g, "");
}

function endpointOf(addr: string): string {
  const { hostname, port, protocol } = new URL(addr);
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

async function part(name: string, check: Promise<unknown>) {
  try {
    await check;
    return { name, ok: true };
  } catch (error) {
    return {
      name,
      ok: false,
      detail: (error as Error).name === "VaultFailure" ? (error as Error).message : "no answer",
    };
  }
}
