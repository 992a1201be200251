import { chmodSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../services/cli/up/free-port.ts";
import { wrapSecretId } from "../../../services/cli/up/vault-bootstrap.ts";
import {
  configureVault,
  createSupervisorToken,
  enableAudit,
} from "../../../services/cli/up/vault-configuration.ts";
import { AUDIT_FILE } from "../../../services/cli/up/vault-server.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { migrate as migrateProxy } from "../../../services/mcp-proxy/store/migrate.ts";
import { migrate as migrateSession } from "../../../services/session/store/migrate.ts";
import {
  giveTo,
  makeDataFolder,
  sandboxCommand,
  sandboxUser,
} from "../../contract/sandbox/sandbox-process.ts";
import { initVault, startVault } from "../../contract/vault/kit/test-vault.ts";
import { TestCa } from "../ca.ts";
import { startTestPostgres } from "../postgres.ts";
import { removeFolder } from "../remove-folder.ts";
import { ArmedProcess } from "./armed-process.ts";
import type { CrashWorld } from "./crash-world.ts";
import { HandCounters } from "./hand-counters.ts";
import { type ServiceName, serviceOf } from "./point-name.ts";

const ROOT = new URL("../../../", import.meta.url);
const PRELOAD = "test/kit/crash/arm.ts";
const MODEL_HTTP = "mcp-proxy-http";
const EGRESS = "mcp-proxy-egress";
const HARNESSES = ["harness-1", "harness-2"];

/**
 * CrashMesh is a real mesh in which every process of the four services can be armed: PostgreSQL, a vault, session,
 * mcp-proxy, sandbox and two harnesses. Who dies is started again at once; the mesh has to cope by itself.
 */
export class CrashMesh {
  readonly addresses: Readonly<Record<string, string>>;
  readonly processes: readonly ArmedProcess[];
  readonly counters: HandCounters;
  /** An operator's certificate. */
  readonly operator: TlsBundle;
  readonly #cleanUps: (() => unknown)[];

  private constructor(parts: {
    addresses: Record<string, string>;
    processes: ArmedProcess[];
    counters: HandCounters;
    operator: TlsBundle;
    cleanUps: (() => unknown)[];
  }) {
    this.addresses = parts.addresses;
    this.processes = parts.processes;
    this.counters = parts.counters;
    this.operator = parts.operator;
    this.#cleanUps = parts.cleanUps;
  }

  /** Starts a mesh. */
  static async start(world: CrashWorld): Promise<CrashMesh> {
    const ca = await TestCa.create();
    const [postgres, vault] = await Promise.all([
      startTestPostgres({ authority: ca.authority }),
      startVault(),
    ]);
    const user = sandboxUser();
    const folder = makeDataFolder(user);
    const cleanUps = [
      () => ca.remove(),
      () => removeFolder(folder),
      () => postgres.stop(),
      () => vault.stop(),
    ];
    await migrateProxy(postgres.connection("ganglion_owner"));
    await migrateSession(postgres.connection("ganglion_owner"));
    const { rootToken } = await initVault(vault.http);
    await configureVault(vault.http, rootToken);
    await enableAudit(vault.http, rootToken, AUDIT_FILE);
    const supervisorToken = await createSupervisorToken(vault.http, rootToken);

    const addresses: Record<string, string> = {};
    for (const name of ["session-1", "mcp-proxy-1", MODEL_HTTP, EGRESS, "sandbox-1", ...HARNESSES])
      addresses[name] = `127.0.0.1:${await freePort()}`;
    const at = (name: string) => addresses[name] as string;
    const common = async (service: ServiceName, name: string) => ({
      PATH: "/usr/local/bin:/usr/bin:/bin",
      GANGLION_INSTANCE: name,
      GANGLION_LISTEN: at(name),
      GANGLION_TLS_DIR: await ca.directory(service, name),
    });
    const cache = { NODE_COMPILE_CACHE: join(ca.root, "compiled") };
    const counters = new HandCounters(join(folder, "bubblewrap", "hands"));
    const sandboxEnv = {
      ...(await common("sandbox", "sandbox-1")),
      GANGLION_SESSION_ADDR: at("session-1"),
      GANGLION_PROXY_ADDR: at("mcp-proxy-1"),
      GANGLION_PROXY_EGRESS_ADDR: at(EGRESS),
      GANGLION_DATA_DIR: folder,
      // So small that the journal is rewritten every few sessions.
      GANGLION_JOURNAL_COMPACT_BYTES: "4096",
      NODE_COMPILE_CACHE: join(folder, "compiled"),
    };
    chmodSync(ca.root, 0o711);
    giveTo(user, ca.root);
    const processes = [
      new ArmedProcess({
        name: "session-1",
        command: nodeCommand("session"),
        env: {
          ...(await common("session", "session-1")),
          ...cache,
          ...postgres.env("ganglion_session"),
          GANGLION_PROXY_ADDR: at("mcp-proxy-1"),
          GANGLION_HEARTBEAT_TTL_MS: "1000",
        },
      }),
      new ArmedProcess({
        name: "mcp-proxy-1",
        command: nodeCommand("mcp-proxy"),
        env: {
          ...(await common("mcp-proxy", "mcp-proxy-1")),
          ...cache,
          ...postgres.env("ganglion_proxy"),
          GANGLION_SESSION_ADDR: at("session-1"),
          GANGLION_PROXY_HTTP_LISTEN: at(MODEL_HTTP),
          GANGLION_PROXY_EGRESS_LISTEN: at(EGRESS),
          GANGLION_SCRIPTED_MODEL_URL: world.model.url,
          GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(world.mcp.url).host,
        },
        bootstrap: async () => ({ vault: await wrapSecretId(vault.http, supervisorToken) }),
      }),
      new ArmedProcess({
        name: "sandbox-1",
        command: sandboxCommand(user, [PRELOAD, "services/sandbox/main.ts"]),
        env: sandboxEnv,
        onDeath: () => counters.collect(),
      }),
    ];
    for (const name of HARNESSES) {
      const env = {
        ...(await common("harness", name)),
        ...cache,
        GANGLION_SESSION_ADDR: at("session-1"),
        GANGLION_SANDBOX_ADDR: at("sandbox-1"),
        GANGLION_PROXY_ADDR: at("mcp-proxy-1"),
        GANGLION_PROXY_HTTP_ADDR: at(MODEL_HTTP),
        // Long enough for the next turn to find its brain, so short that leases are given back within each session.
        GANGLION_HARNESS_LINGER_MS: "150",
        GANGLION_HARNESS_POLL_MS: "200",
      };
      processes.push(new ArmedProcess({ name, command: nodeCommand("harness"), env }));
    }
    const mesh = new CrashMesh({
      addresses,
      processes,
      counters,
      operator: await ca.bundle("operator", "crash"),
      cleanUps,
    });
    try {
      await Promise.all(processes.map((process) => process.start()));
    } catch (error) {
      await mesh.stop();
      throw error;
    }
    return mesh;
  }

  /** The processes that can come by a point. */
  instancesOf(point: string): ArmedProcess[] {
    const service = serviceOf(point);
    return this.processes.filter(({ spec }) => spec.name.replace(/-\d+$/, "") === service);
  }

  /** A process by its instance's name. */
  process(name: string): ArmedProcess {
    const found = this.processes.find(({ spec }) => spec.name === name);
    if (!found) throw new Error(`there is no ${name}`);
    return found;
  }

  /** Resolves when all processes listen. */
  async whole(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.ready));
  }

  /** Points that any process came by since the last call. */
  async seen(): Promise<string[]> {
    const all = await Promise.all(this.processes.map((process) => process.seen()));
    return [...new Set(all.flat())].sort();
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.stop()));
    for (const cleanUp of this.#cleanUps.toReversed()) await cleanUp();
  }
}

function nodeCommand(service: ServiceName): [string, ...string[]] {
  const path = (name: string) => fileURLToPath(new URL(name, ROOT));
  return [process.execPath, "--import", path(PRELOAD), path(`services/${service}/main.ts`)];
}
