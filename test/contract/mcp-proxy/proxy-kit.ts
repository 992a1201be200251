import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import pg from "pg";
import { wrapSecretId } from "../../../services/cli/up/vault-bootstrap.ts";
import {
  configureVault,
  createSupervisorToken,
  enableAudit,
} from "../../../services/cli/up/vault-configuration.ts";
import { AUDIT_FILE } from "../../../services/cli/up/vault-server.ts";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import type { Definition } from "../../../services/common/grpc/handlers.ts";
import type { RunningServer } from "../../../services/common/grpc/start-server.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { createMeshFetch, type MeshFetch } from "../../../services/common/tls/mesh-fetch.ts";
import {
  type Record as AuditRecord,
  AuditServiceService,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { BindingServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { McpProxyServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import {
  type SealedSecret,
  VaultServiceService,
} from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { migrate } from "../../../services/mcp-proxy/store/migrate.ts";
import { TestCa } from "../../kit/ca.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import { type RunningService, startService } from "../../kit/start-service.ts";
import { initVault, type LocalVault, startVault } from "../vault/kit/test-vault.ts";
import { type FakeLease, startSessionStandIn } from "./session-stand-in.ts";

const MAIN = new URL("../../../services/mcp-proxy/main.ts", import.meta.url);

/** The workspace of every test that does not say otherwise. */
export const WORKSPACE = "wrkspc_default";

/** A change of a credential that changes nothing. */
export const NO_CHANGE = {
  secret: undefined,
  refreshToken: undefined,
  clientSecret: undefined,
  metadataSet: {},
  metadataRemove: [],
  auth: undefined,
};

/** What a session of a test may use. */
export interface BoundOptions {
  servers?: { name: string; url: string; secret?: string }[];
  models?: string[];
  epoch?: bigint;
  harness?: string;
}

/** A session that is bound and has a token. */
export interface BoundSession {
  sessionId: string;
  token: string;
  tokenId: string;
  vaultId: string;
  epoch: bigint;
}

function isAsked({ operation }: AuditRecord): boolean {
  return !operation.startsWith("binding.");
}

/** mcp-proxy as a process, with a real PostgreSQL, a vault, and a stand-in for the session service. */
export class ProxyKit {
  readonly ca: TestCa;
  readonly postgres: TestPostgres;
  readonly vault: LocalVault;
  readonly rootToken: string;
  readonly unsealKey: string;
  readonly supervisorToken: string;
  /** Leases by session; undefined values answer NOT_FOUND. */
  readonly leases = new Map<string, FakeLease>();
  service!: RunningService;
  sessionAddress = "";
  #env: Record<string, string> = {};
  #preload: { preload?: string } = {};
  #sessionServer: RunningServer | undefined;
  #closers: (() => void | Promise<void>)[] = [];
  #clients = new Map<string, unknown>();

  private constructor(
    ca: TestCa,
    postgres: TestPostgres,
    vault: LocalVault,
    keys: { rootToken: string; unsealKey: string; supervisorToken: string },
  ) {
    this.ca = ca;
    this.postgres = postgres;
    this.vault = vault;
    this.rootToken = keys.rootToken;
    this.unsealKey = keys.unsealKey;
    this.supervisorToken = keys.supervisorToken;
  }

  /** Starts everything; `env` goes to the proxy's process, and a module may be loaded before it. */
  static async start(
    env: Record<string, string> = {},
    preload: { preload?: string } = {},
  ): Promise<ProxyKit> {
    const ca = await TestCa.create();
    const [postgres, vault] = await Promise.all([
      startTestPostgres({ authority: ca.authority }),
      startVault(),
    ]);
    await migrate(postgres.connection("ganglion_owner"));
    const { rootToken, unsealKey } = await initVault(vault.http);
    await configureVault(vault.http, rootToken);
    await enableAudit(vault.http, rootToken, AUDIT_FILE);
    const supervisorToken = await createSupervisorToken(vault.http, rootToken);
    const kit = new ProxyKit(ca, postgres, vault, { rootToken, unsealKey, supervisorToken });
    kit.#env = env;
    kit.#preload = preload;
    kit.#sessionServer = await startSessionStandIn(kit.ca, kit.leases);
    kit.sessionAddress = kit.#sessionServer.address;
    kit.service = await kit.startProxy();
    return kit;
  }

  /** A bootstrap document with a fresh wrapped login. */
  async bootstrap() {
    return { vault: await wrapSecretId(this.vault.http, this.supervisorToken) };
  }

  /** Another process of mcp-proxy on the same database and vault. */
  async startProxy(env: Record<string, string> = {}, bootstrap?: object): Promise<RunningService> {
    const document = bootstrap ?? (await this.bootstrap());
    return startService(MAIN, { ...this.#preload, env: this.proxyEnv(env), bootstrap: document });
  }

  /** The environment of a process of mcp-proxy. */
  proxyEnv(env: Record<string, string> = {}): Record<string, string> {
    return {
      ...this.postgres.env("ganglion_proxy"),
      GANGLION_INSTANCE: "mcp-proxy-1",
      GANGLION_LISTEN: "127.0.0.1:0",
      GANGLION_SESSION_ADDR: this.sessionAddress,
      ...this.#env,
      ...env,
    };
  }

  /** Kills the proxy and starts it again. */
  async restartProxy(): Promise<void> {
    await this.service.stop();
    this.#clients.clear();
    this.service = await this.startProxy();
  }

  /** A client of a service of the proxy, with a certificate of that service. */
  async client<D extends Definition>(
    definition: D,
    service: string,
    instance = `${service}-1`,
    address = this.service.listening.addr,
  ): Promise<MeshClient<D>> {
    const key = `${Object.values(definition)[0]?.path} ${service} ${instance} ${address}`;
    const known = this.#clients.get(key);
    if (known) return known as MeshClient<D>;
    const client = createClient(definition, address, await this.ca.bundle(service, instance), "mcp-proxy", {
      image: null,
    });
    this.#clients.set(key, client);
    this.#closers.push(() => client.close());
    return client;
  }

  bindings(service = "session") {
    return this.client(BindingServiceService, service);
  }

  mcp(instance = "harness-1", address?: string) {
    return this.client(McpProxyServiceService, "harness", instance, address);
  }

  vaults(service = "operator") {
    return this.client(VaultServiceService, service);
  }

  /** A fetch to the model door with a harness's certificate. */
  async door(instance = "harness-1", service = "harness"): Promise<MeshFetch> {
    const mesh = createMeshFetch(await this.ca.bundle(service, instance), "mcp-proxy");
    this.#closers.push(() => mesh.close());
    return mesh;
  }

  /** host:port of the model door. */
  doorAddress(service = this.service): string {
    const line = service.lines().find(({ http_addr: addr }) => addr !== undefined);
    return String(line?.http_addr);
  }

  /** Seals a secret for a vault and a destination. */
  async seal(secret: string, vaultId: string, url: string, kind = "static_bearer"): Promise<SealedSecret> {
    const { keyId, publicKey } = await (await this.vaults()).getSealingKey({});
    const suite = new CipherSuite({
      kem: new DhkemX25519HkdfSha256(),
      kdf: new HkdfSha256(),
      aead: new Aes256Gcm(),
    });
    const buffer = (bytes: Uint8Array) => new Uint8Array(bytes).buffer;
    const sender = await suite.createSenderContext({
      recipientPublicKey: await suite.kem.deserializePublicKey(buffer(publicKey)),
      info: buffer(Buffer.from("ganglion/credential/v1")),
    });
    const ciphertext = await sender.seal(
      buffer(Buffer.from(secret)),
      buffer(Buffer.from(`${vaultId}\n${kind}\n${url}`)),
    );
    return { keyId, enc: Buffer.from(sender.enc), ciphertext: Buffer.from(ciphertext) };
  }

  /** Makes a vault with bearer tokens for these servers. */
  async makeVault(secrets: { url: string; secret: string }[] = []): Promise<string> {
    const vaults = await this.vaults();
    const { vault } = await vaults.createVault({
      requestId: "",
      displayName: "test",
      ...{ metadata: {}, workspaceId: "", isDecoy: false },
    });
    const vaultId = vault?.id ?? "";
    for (const { url, secret } of secrets) {
      await vaults.createCredential({
        requestId: "",
        vaultId,
        displayName: "",
        metadata: {},
        auth: { $case: "staticBearer", value: { mcpServerUrl: url } },
        secret: await this.seal(secret, vaultId, url),
        refreshToken: undefined,
        clientSecret: undefined,
      });
    }
    return vaultId;
  }

  /** Stores a key for a model API in the system vault. */
  async storeModelKey(baseUrl: string, secret: string): Promise<string> {
    const vaults = await this.vaults();
    const { vault } = await vaults.getSystemVault({ workspaceId: "" });
    const vaultId = vault?.id ?? "";
    const { credential } = await vaults.createCredential({
      requestId: "",
      vaultId,
      displayName: "model",
      metadata: {},
      auth: { $case: "modelApiKey", value: { baseUrl } },
      secret: await this.seal(secret, vaultId, baseUrl, "model_api_key"),
      refreshToken: undefined,
      clientSecret: undefined,
    });
    return credential?.id ?? "";
  }

  /** Binds a new session, gives it to a harness and fetches a token. */
  async bound(options: BoundOptions = {}): Promise<BoundSession> {
    const { servers = [], models = [], epoch = 1n, harness = "harness-1" } = options;
    const withSecret = servers.flatMap(({ url, secret }) => (secret === undefined ? [] : [{ url, secret }]));
    const vaultId = await this.makeVault(withSecret);
    const sessionId = newId("sesn");
    await (await this.bindings()).bind({
      sessionId,
      workspaceId: WORKSPACE,
      vaultIds: [vaultId],
      mcpServers: servers.map(({ name, url }) => ({ name, url })),
      models,
      replacesMcpServers: false,
      networking: undefined,
      gitRepositories: [],
    });
    const { token, tokenId } = await this.lease(sessionId, epoch, harness);
    return { sessionId, token, tokenId, vaultId, epoch };
  }

  /** Gives a session to a harness and issues it a token. */
  async lease(sessionId: string, epoch: bigint, harness = "harness-1") {
    const owner = `spiffe://ganglion.local/harness/${harness}`;
    this.leases.set(sessionId, { workspaceId: WORKSPACE, epoch, owner });
    const client = await this.client(BindingServiceService, "harness", harness);
    return client.issueToken({ sessionId, epoch, audience: 1, handId: "" });
  }

  /** Raises a fence as the session service does, in the database. */
  async raiseFence(sessionId: string, lowestEpoch: bigint, ended: boolean): Promise<void> {
    await this.sql("ganglion_session", "SELECT proxy.raise_fence($1, $2, $3)", [
      sessionId,
      lowestEpoch,
      ended,
    ]);
  }

  /** Rows of a statement run as that database role. */
  async sql(
    role: "ganglion_owner" | "ganglion_session" | "ganglion_proxy",
    text: string,
    values: unknown[] = [],
  ) {
    const client = new pg.Client(this.postgres.connection(role));
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Audit records of what a session asks for; not of its binding. */
  async records(sessionId: string): Promise<AuditRecord[]> {
    return (await this.allRecords(sessionId)).filter(isAsked);
  }

  /** All audit records of a session. */
  async allRecords(sessionId: string): Promise<AuditRecord[]> {
    const audit = await this.client(AuditServiceService, "operator");
    const request = { afterSequence: 0n, limit: 1000, sessionId, requestId: "", withLines: false };
    const { records } = await audit.listRecords(request);
    return records;
  }

  /** What a session asks for, as soon as that is enough. */
  async recordsWhen(
    sessionId: string,
    areEnough: (records: AuditRecord[]) => boolean,
  ): Promise<AuditRecord[]> {
    const audit = await this.client(AuditServiceService, "operator");
    const all: AuditRecord[] = [];
    for await (const { records } of audit.watchRecords({ afterSequence: 0n, sessionId, withLines: false })) {
      all.push(...records.filter(isAsked));
      if (areEnough(all)) return all;
    }
    throw new Error("the watch ended");
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    for (const close of this.#closers) await close();
    await this.service.stop();
    this.#sessionServer?.force();
    await this.vault.stop();
    await this.postgres.stop();
    this.ca.remove();
  }
}

/** The error that a call ends with. */
export async function failureOf(work: Promise<unknown>): Promise<GanglionError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof GanglionError) return error;
    throw error;
  }
  throw new Error("the call was not refused");
}

/** kind, effect and reason of records, in order. */
export function briefly(records: AuditRecord[]): string[] {
  const kinds = [
    "",
    "decision",
    "dispatch",
    "outcome",
    "recovery",
    "log_open",
    "log_close",
    "session_end",
    "anomaly",
  ];
  return records.map(({ kind, effect, reason }) => [kinds[kind], effect, reason].filter(Boolean).join(" "));
}
