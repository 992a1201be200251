import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "../common/config/load-config.ts";
import { readBootstrap } from "../common/config/read-bootstrap.ts";
import { createClient } from "../common/grpc/create-client.ts";
import { startServer } from "../common/grpc/start-server.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { PolicyInvalid } from "../common/policy/read-policy.ts";
import { createMetrics } from "../common/telemetry/metrics.ts";
import { createTracing } from "../common/telemetry/tracing.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { VERSION } from "../common/version.ts";
import { SessionServiceService } from "../gen/ganglion/session/v1/session_service.ts";
import { openAudit } from "./audit/open-audit.ts";
import { recordTampering } from "./audit/report-anomalies.ts";
import { fields, listOf } from "./config.ts";
import { createAuditMacs } from "./domain/audit-macs.ts";
import type { Run } from "./domain/call-mcp-tool.ts";
import { isListed } from "./domain/destination-policy.ts";
import { LiveSessions } from "./domain/live-sessions.ts";
import { createVaults } from "./domain/manage-vaults.ts";
import { createPlaceholders } from "./domain/placeholder.ts";
import { purgeRetired } from "./domain/retire-credentials.ts";
import { createRowMac } from "./domain/row-mac.ts";
import { createTokenSeal } from "./domain/sealed-token.ts";
import { serveEgressDoor } from "./egress/serve-egress-door.ts";
import { createSessionAuthorities } from "./egress/session-authority.ts";
import { serveModelDoor } from "./http/serve-model-door.ts";
import { openPolicyFile, type PolicyFile } from "./policy/policy-file.ts";
import { watchPolicy } from "./policy/watch-policy.ts";
import { readinessPart } from "./readiness.ts";
import { auditService } from "./rpc/audit-service.ts";
import { bindingService } from "./rpc/binding-service.ts";
import { decodeCall, encodeCall } from "./rpc/call-codec.ts";
import { mcpProxyService } from "./rpc/mcp-proxy-service.ts";
import { toolPinService } from "./rpc/tool-pin-service.ts";
import { vaultService } from "./rpc/vault-service.ts";
import { createAccessStore } from "./store/access-store.ts";
import { createBindingStore } from "./store/binding-store.ts";
import { createCallStore } from "./store/call-store.ts";
import { connectionConfig, createPool } from "./store/connect.ts";
import { createCredentialStore } from "./store/credential-store.ts";
import { watchFences } from "./store/fence-watch.ts";
import { createAuthorizationStore, createRenewalStore } from "./store/oauth-store.ts";
import { beat } from "./store/replica-store.ts";
import { createToolPinStore } from "./store/tool-pin-store.ts";
import { listVariables } from "./store/variable-store.ts";
import { createVaultStore } from "./store/vault-store.ts";
import { createVaultTokenStore } from "./store/vault-token-store.ts";
import { findUsedVaults } from "./store/warm.ts";
import { createControlPlane } from "./upstream/control-plane.ts";
import { createLazyMcpCaller } from "./upstream/lazy-mcp-caller.ts";
import { modelUpstreams } from "./upstream/model-upstreams.ts";
import { openOauth } from "./upstream/oauth/open-oauth.ts";
import { createPools } from "./upstream/pools.ts";
import { createResolver } from "./upstream/resolver.ts";
import { openKeyRing } from "./vault/checkpoint-keys.ts";
import { createOauthDocuments } from "./vault/oauth-documents.ts";
import { openVault, WrongPrivileges } from "./vault/open-vault.ts";
import { BootstrapCompromised } from "./vault/proxy-login.ts";
import { startRevocationWorker } from "./vault/revocation-worker.ts";
import { createSecretReader } from "./vault/secret-reader.ts";
import { createSecretWriter } from "./vault/secret-writer.ts";
import { createSessionTokens } from "./vault/session-tokens.ts";
import { WrongMount } from "./vault/wrong-mount.ts";

/** sysexits: try again later (with a new login); and: not allowed, which no restart cures. */
const EXIT_RETRY = 75;
const EXIT_NOT_ALLOWED = 77;
/** The settings are wrong, as loadConfig says it. */
const EXIT_CONFIG = 78;
const BEAT_MS = 3000;
const FORGET_MS = 600_000;
const PURGE_MS = 15_000;
const LOAD_LATER_MS = 3000;

const config = loadConfig("mcp-proxy", fields);
const writer = { instance: config.GANGLION_INSTANCE, bootId: randomUUID() };
const log = createLogger({ service: "mcp-proxy", instance: writer.instance }, config.GANGLION_LOG_LEVEL);
const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message);
const timers: NodeJS.Timeout[] = [];
const insideHosts = listOf(config.GANGLION_PROXY_ALLOW_HTTP_HOSTS).map(withoutBrackets);
// Before the login is used, which can be done only once.
const bound = openPolicy();

try {
  await start();
} catch (error) {
  if (error instanceof WrongMount) {
    log.fatal({ err: error }, "the Vault mount is wrong");
    process.exit(EXIT_CONFIG);
  }
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
  const macs = createAuditMacs(vault.auditHmacKey);
  const pool = createPool(database, warn("database connection lost"));
  await beat(pool, writer);
  timers.push(setInterval(() => void beat(pool, writer).catch(warn("heartbeat failed")), BEAT_MS));

  const mac = createRowMac(keys.macKey);
  const placeholderOf = createPlaceholders(keys.macKey);
  const authorities = createSessionAuthorities(keys.macKey);
  const vaultStore = createVaultStore(pool);
  const bindings = createBindingStore(pool);
  const vaultTokenStore = createVaultTokenStore(pool, writer);
  const tokens = createSessionTokens({
    client,
    loginToken: login.token,
    store: vaultTokenStore,
    replica: writer.instance,
    macs,
  });
  const secrets = createSecretReader(client, mount, tokens);
  const metrics = createMetrics("mcp-proxy", writer.instance);
  const tracing = createTracing("mcp-proxy", writer.instance);
  const audit = await openAudit({
    pool,
    writer: { ...writer, hmacKeyId: macs.keyId },
    folder: config.GANGLION_AUDIT_DIR,
    sinks: config.GANGLION_AUDIT_SINKS,
    build: `ganglion ${VERSION}`,
    openKeys: (logId) => openKeyRing(client, { mount, token: login.token, logId }),
    registry: metrics.registry,
    log,
  });
  const { ledger } = audit;
  const vaults = createVaults(vaultStore, mac, ledger);
  const calls = createCallStore(pool, writer, audit.isUnsent);
  await audit.begin(bound.digest);
  const stopPolicy = watchPolicy(bound, { ledger, log });
  timers.push(
    setInterval(() => void calls.forgetEnded().catch(warn("the journal could not be cleaned")), FORGET_MS),
  );
  await vaultTokenStore.queueLeftBehind();
  const revocations = startRevocationWorker({
    client,
    loginToken: login.token,
    store: vaultTokenStore,
    onFailure: warn("revocation at Vault failed, trying again"),
  });

  const credentials = createCredentialStore(pool);
  const secretWriter = createSecretWriter(client, mount, login.token);
  const purge = () =>
    purgeRetired({ store: credentials, vaultStore, writer: secretWriter, ledger }).catch(
      warn("secrets could not be removed from Vault, trying again"),
    );
  void purge();
  timers.push(setInterval(() => void purge(), PURGE_MS));

  const controlPlane = await createControlPlane([
    config.GANGLION_LISTEN,
    config.GANGLION_PROXY_HTTP_LISTEN,
    config.GANGLION_PROXY_EGRESS_LISTEN,
    ...(config.GANGLION_ADMIN_LISTEN ? [config.GANGLION_ADMIN_LISTEN] : []),
    ...config.GANGLION_SESSION_ADDR,
    `${config.PGHOST}:${config.PGPORT}`,
    endpointOf(bootstrap.vault.addr),
    ...config.GANGLION_PROXY_FORBIDDEN_ENDPOINTS,
  ]);
  const upstreams = modelUpstreams([
    ["anthropic", config.GANGLION_MODEL_URL],
    ["scripted", config.GANGLION_SCRIPTED_MODEL_URL],
  ]);
  const operatorHosts = upstreams.flatMap(({ name, destination }) =>
    name === "scripted" || destination.scheme === "http" ? [`${destination.host}:${destination.port}`] : [],
  );
  const { isControlPlane } = controlPlane;
  const resolve = createResolver({
    allowHttpHosts: new Set([...insideHosts, ...operatorHosts]),
    isControlPlane,
  });
  // The model's address is the operator's word for the model door, not for hands.
  const handPolicy = { allowHttpHosts: new Set(insideHosts), isControlPlane };
  const extraCa = config.GANGLION_UPSTREAM_CA_FILE && readFileSync(config.GANGLION_UPSTREAM_CA_FILE, "utf8");
  const pools = createPools({ connectMs: 5000, headersMs: 600_000, bodyIdleMs: 600_000 }, extraCa);
  const mcp = createLazyMcpCaller(pools);
  const live = new LiveSessions();
  const running = new Map<string, Run>();
  const oauth = openOauth({
    ...{ ledger, bound, resolve, pools, secrets, mac, macKey: keys.macKey },
    documents: createOauthDocuments({
      ...{
        client,
        mount,
        loginToken: login.token,
        tokens,
        writer: secretWriter,
        replica: writer.instance,
        macs,
      },
    }),
    renewals: createRenewalStore(pool, writer),
    authorizations: createAuthorizationStore(pool),
  });
  const passage = { access: createAccessStore(pool), ledger, secrets: oauth.secrets, mac, bound, macs };
  const pins = createToolPinStore(pool);

  const fences = watchFences({
    pool,
    connection: connectionConfig(database),
    live,
    onRaised: (sessionId) => {
      secrets.drop(sessionId);
      tokens.drop(sessionId);
      revocations.wake();
      audit.wake();
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
  const egressDoor = await serveEgressDoor(
    { tls, listen: config.GANGLION_PROXY_EGRESS_LISTEN },
    {
      ...passage,
      policy: handPolicy,
      resolve: createResolver(handPolicy),
      pools,
      live,
      placeholderOf,
      mint: bound.mint,
      seal: createTokenSeal(keys.macKey),
      authorities,
      log,
    },
  );
  await controlPlane.add(egressDoor.address);
  log.info({ egress_addr: egressDoor.address }, "egress door listening");
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
        ledger,
        listVariables: (workspaceId, vaultIds) => listVariables(pool, workspaceId, vaultIds),
        placeholderOf,
        // Behind a blind tunnel a hand meets the same servers as this process, and checks them itself.
        trustedPem: async (sessionId) => `${(await authorities.pem(sessionId)).trimEnd()}\n${extraCa ?? ""}`,
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
        store: credentials,
        writer: secretWriter,
        seal: keys.sealingKey,
        mac,
        ledger,
        sealingKey: keys.sealingKey,
        modelUrls: upstreams.map(({ destination }) => destination.url),
        validate: oauth.validate,
        authorizations: oauth.authorizations,
        onPurgeFailed: warn("a secret could not be removed from Vault, trying again"),
      }),
      mcpProxyService({
        ...passage,
        mcp,
        pins,
        renewals: oauth.renewals,
        resolve,
        journal: calls,
        live,
        encode: encodeCall,
        decode: decodeCall,
        running,
        wait: (ms, signal) => sleep(ms, undefined, { signal }),
      }),
      toolPinService({ pins, ledger, mac }),
      auditService({ pool, audit, wait: (ms, signal) => sleep(ms, undefined, { signal }) }),
    ].map((served) => recordTampering(served, ledger)),
    readiness: async () => [
      await readinessPart("postgres", pool.query("SELECT 1")),
      await readinessPart("vault", client.read("auth/token/lookup-self", login.token())),
    ],
    onDrain: () => {
      door.drain();
      egressDoor.drain();
    },
    onStopped: async () => {
      const grace = config.GANGLION_DRAIN_GRACE_MS;
      await Promise.all([door.close(grace), egressDoor.close(grace)]);
      const inGrace = (work: Promise<unknown>) =>
        Promise.race([work, sleep(grace, undefined, { ref: false })]);
      await inGrace(Promise.allSettled([...running.values()].map((run) => run.promise)));
      await inGrace(oauth.renewals.settled());
      for (const timer of timers) clearInterval(timer);
      stopPolicy();
      await fences.close();
      await vaultTokenStore.queueOwn().catch(warn("own Vault tokens could not be queued"));
      await revocations.drain();
      await revocations.close();
      await audit.close();
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

function openPolicy(): PolicyFile {
  try {
    const inside = { allowHttpHosts: new Set(insideHosts) };
    return openPolicyFile(config.GANGLION_POLICY_FILE, (destination) => isListed(destination, inside));
  } catch (error) {
    const problems = error instanceof PolicyInvalid ? error.problems : ["it cannot be read"];
    log.fatal({ setting: "GANGLION_POLICY_FILE", problems }, "there is no valid policy");
    process.exit(EXIT_CONFIG);
  }
}

/** IPv6 addresses are kept as they are dialled. */
function withoutBrackets(host: string): string {
  return host.replace(/[[\]]/g, "");
}

function endpointOf(addr: string): string {
  const { hostname, port, protocol } = new URL(addr);
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}
