import { EventEmitter } from "node:events";
import { join } from "node:path";
import { auditSettings } from "./audit-settings.ts";
import { type DelegatedCgroup, delegateCgroup, removeCgroup } from "./delegated-cgroup.ts";
import { firstLogins } from "./first-logins.ts";
import type { KeptServer, LaunchedServer } from "./kept-server.ts";
import { ManagedProcess, type ProcessSpec } from "./managed-process.ts";
import { ownEndpoints, type ServiceInstance, serviceEnvironment } from "./mesh-services.ts";
import { operatorFileSetting } from "./operator-file.ts";
import type { PartsContext } from "./parts-context.ts";
import { embeddedPostgres, externalPostgres, type PostgresPart, type ServiceRole } from "./postgres-part.ts";
import type { ProcessRecord } from "./process-record.ts";
import { sandboxSettings } from "./sandbox-settings.ts";
import { ScriptedModel } from "./scripted-model.ts";
import { serviceSpec } from "./service-specs.ts";
import type { StartLine } from "./supervisor-options.ts";
import { startVaultPart, type VaultPart } from "./vault-part.ts";

const START_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 12_000;

/** What is told about a running part. */
export interface PartStatus {
  readonly name: string;
  readonly state: string;
  readonly pid: number | undefined;
  readonly restarts: number;
  readonly lastExit: string | undefined;
}

type Part = {
  state: string;
  restarts: number;
  lastExit: string | undefined;
  record: ProcessRecord | undefined;
};

/** MeshParts are the processes of a mesh: what each needs before it can start, and in which order they stop. */
export class MeshParts extends EventEmitter<{ change: [] }> {
  readonly #context: PartsContext;
  readonly #processes = new Map<string, ManagedProcess>();
  readonly #servers = new Map<string, KeptServer<LaunchedServer>>();
  readonly #scripted: ScriptedModel | undefined;
  readonly #postgres: PostgresPart;
  #vault: VaultPart | undefined;
  #cgroup: DelegatedCgroup | undefined;
  #isStopping = false;

  constructor(context: PartsContext) {
    super();
    this.#context = context;
    const { options, ports, users, files, certificates } = context;
    this.#postgres = options.postgres
      ? externalPostgres(options.postgres)
      : embeddedPostgres({
          state: options.state,
          port: ports.postgres as number,
          tlsDir: certificates.directory("postgres"),
          ownerTlsDir: certificates.directory("migrations"),
          user: users.pg,
          logFile: join(files.logs, "postgres.log"),
        });
    if (this.#postgres.server) this.#keep("postgres", this.#postgres.server);
    this.#scripted =
      options.scriptedModel === "off" || options.scriptedModelUrl !== undefined
        ? undefined
        : ScriptedModel.find({
            checkout: options.checkout,
            state: options.state,
            port: ports["scripted-model"] as number,
            user: users.model,
            logFile: join(files.logs, "scripted-model.log"),
          });
    if (options.scriptedModel === "on" && !this.#scripted && options.scriptedModelUrl === undefined)
      throw new Error("there is no scripted model in this checkout");
  }

  /** True while the scripted stand-in answers. */
  get scriptedModel(): boolean {
    if (this.#context.options.scriptedModelUrl !== undefined) return true;
    return this.#scripted !== undefined && this.#processes.has(this.#scripted.name);
  }

  /** Starts everything; what does not need another part starts at once. */
  async start(say: (line: StartLine) => void): Promise<void> {
    const { users, options } = this.#context;
    const step = async <T>(name: string, work: Promise<T>): Promise<T> => {
      const begun = Date.now();
      say({ step: name, state: "begun" });
      const result = await work;
      say({ step: name, state: "done", ms: Date.now() - begun });
      return result;
    };
    if (users.sandbox) this.#cgroup = delegateCgroup(options.id, users.sandbox);
    const postgres = step("postgres", this.#postgres.start());
    const vault = step("vault", this.#startVault());
    const launch = (instance: ServiceInstance) => {
      const work = async () => {
        if (instance.service === "session") await postgres;
        // mcp-proxy is started at once and waits for its login while it loads.
        await this.#run(this.#serviceSpec(instance, Promise.all([postgres, vault])));
      };
      return step(instance.name, work());
    };
    const started = new Map(this.#context.services.map((instance) => [instance.name, launch(instance)]));
    const logins = async () => {
      await Promise.all([started.get("session-1"), started.get("mcp-proxy-1")]);
      const { isScripted } = await firstLogins({ ...this.#context, scripted: this.#scripted });
      if (isScripted && this.#scripted) await this.#run(this.#scripted.spec());
    };
    await allOrFirstFailure([postgres, vault, ...started.values(), step("logins", logins())]);
  }

  /** Stops everything in order; the data stays. */
  async stop(say: (step: string) => void): Promise<void> {
    this.#isStopping = true;
    const { services } = this.#context;
    const orders = [...new Set(services.map(({ stopOrder }) => stopOrder))].sort();
    for (const order of orders) {
      const names = services.filter(({ stopOrder }) => stopOrder === order).map(({ name }) => name);
      await Promise.all(names.map((name) => this.#stopProcess(name, say)));
    }
    const rest = [...this.#processes.keys()];
    await Promise.all(rest.map((name) => this.#stopProcess(name, say)));
    for (const [name, server] of this.#servers) {
      say(name);
      await server.stop();
    }
    removeCgroup(this.#cgroup);
  }

  /** Services look at their files by themselves; PostgreSQL has to be told. */
  certificatesChanged(): void {
    this.#postgres.server?.current?.reload();
    this.#vault?.reload();
  }

  /** Running processes by name. */
  records(): Record<string, ProcessRecord> {
    const entries = this.#all().map(([name, part]) => [name, part.record] as const);
    return Object.fromEntries(
      entries.filter((entry): entry is [string, ProcessRecord] => entry[1] !== undefined),
    );
  }

  /** How each part is. */
  statuses(): PartStatus[] {
    return this.#all().map(([name, { state, restarts, lastExit, record }]) => ({
      name,
      state,
      pid: record?.pid,
      restarts,
      lastExit,
    }));
  }

  /** What hands are limited by. */
  hands(): Record<string, unknown> {
    return { cgroup: this.#cgroup?.version ?? 0, separateUser: this.#context.users.sandbox !== undefined };
  }

  #all(): [string, Part][] {
    return [...this.#servers, ...this.#processes];
  }

  async #startVault(): Promise<void> {
    this.#vault = await startVaultPart(this.#context, (process) => {
      this.#processes.set("vault", process);
      process.on("change", () => this.emit("change"));
    });
  }

  #keep(name: string, server: KeptServer<LaunchedServer>): void {
    this.#servers.set(name, server);
    server.on("change", () => this.emit("change"));
  }

  #serviceSpec(instance: ServiceInstance, stores: Promise<unknown>): ProcessSpec {
    const { options, files, users, ports, certificates } = this.#context;
    const at = (port: string) => `127.0.0.1:${ports[port]}`;
    const role = instance.cn as ServiceRole;
    const hasDatabase = instance.service === "session" || instance.service === "mcp-proxy";
    const login = hasDatabase ? this.#postgres.login(role) : undefined;
    const isProxy = instance.service === "mcp-proxy";
    const bootstrap = async () => {
      await stores;
      const vault = isProxy ? await this.#vault?.login() : undefined;
      return JSON.stringify({ ...(vault ? { vault } : {}), ...(login ? { postgres: login } : {}) });
    };
    const home = instance.service === "sandbox" ? this.#cgroup?.home : undefined;
    return serviceSpec({
      instance,
      ...(home ? { cgroup: home } : {}),
      checkout: options.checkout,
      state: options.state,
      listen: at(instance.name),
      adminListen: at(`${instance.name}-admin`),
      tlsDir: certificates.directory(instance.name),
      logFile: join(files.logs, `${instance.name}.log`),
      user: users[instance.user],
      settings: serviceEnvironment(instance.service, {
        services: this.#context.services,
        at,
        postgres: hasDatabase ? this.#postgres.env(role) : {},
        scriptedModelUrl: options.scriptedModelUrl ?? this.#scripted?.url,
        allowHttpHosts: options.allowHttpHosts,
        forbiddenEndpoints: ownEndpoints(ports),
        own: this.#ownSettings(instance.service),
      }),
      ...(isProxy || login ? { bootstrap } : {}),
    });
  }

  #ownSettings(service: ServiceInstance["service"]): Record<string, string> {
    const { options } = this.#context;
    const operatorFile = (setting: string, name: string, text: string | undefined) =>
      operatorFileSetting(setting, join(options.state, name), text);
    switch (service) {
      case "session":
        return operatorFile("GANGLION_MODEL_PRICES_FILE", "model-prices.json", options.modelPrices);
      case "mcp-proxy":
        return {
          ...auditSettings(this.#context),
          ...operatorFile("GANGLION_UPSTREAM_CA_FILE", "upstream-ca.pem", options.upstreamCa),
          ...operatorFile("GANGLION_POLICY_FILE", "policy.yaml", options.policy),
        };
      case "sandbox":
        return sandboxSettings(this.#context, this.#cgroup);
      case "harness":
        return operatorFile("GANGLION_HARNESS_EVALUATOR", "evaluator.mjs", options.evaluator);
      case "gateway":
        return {};
    }
  }

  async #run(spec: ProcessSpec): Promise<void> {
    // Another part failed meanwhile, and what has been started is being stopped.
    if (this.#isStopping) throw new Error(`${spec.name} was not started`);
    const process = new ManagedProcess(spec);
    this.#processes.set(spec.name, process);
    process.on("change", () => this.emit("change"));
    await process.start(START_TIMEOUT_MS);
  }

  async #stopProcess(name: string, say: (step: string) => void): Promise<void> {
    const process = this.#processes.get(name);
    if (!process || process.state === "stopped") return;
    say(name);
    await process.stop(STOP_GRACE_MS);
  }
}

/** Rejects with the first failure at once, and keeps the others from being unhandled. */
async function allOrFirstFailure(work: Promise<unknown>[]): Promise<void> {
  for (const one of work) one.catch(() => {});
  await Promise.all(work);
}
