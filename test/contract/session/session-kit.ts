import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import pg from "pg";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import {
  type CallOptions,
  createClient,
  type MeshClient,
} from "../../../services/common/grpc/create-client.ts";
import { type Definition, implement, unary } from "../../../services/common/grpc/handlers.ts";
import { encodeForwardedPrincipal, PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { AgentServiceService } from "../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { ApiKeyServiceService } from "../../../services/gen/ganglion/agent/v1/api_key_service.ts";
import { EnvironmentServiceService } from "../../../services/gen/ganglion/agent/v1/environment_service.ts";
import {
  BindingServiceService,
  type BindRequest,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import {
  CreateSessionRequest,
  EmitEventsRequest,
  type EmitEventsResponse,
  type Session,
  SessionServiceService,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import type { ModelUsage } from "../../../services/gen/ganglion/types/v1/content.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { migrate as migrateProxy } from "../../../services/mcp-proxy/store/migrate.ts";
import { migrate } from "../../../services/session/store/migrate.ts";
import { TestCa } from "../../kit/ca.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import { type RunningService, startService } from "../../kit/start-service.ts";

const MAIN = new URL("../../../services/session/main.ts", import.meta.url);
const IMAGE = new URL("../../../services/gen/image.binpb", import.meta.url).pathname;

/** A workspace beside the default one. */
export const OTHER_WORKSPACE = "wrkspc_other";

/** All four services as one caller sees them. */
export interface Caller {
  readonly session: MeshClient<typeof SessionServiceService>;
  readonly agents: MeshClient<typeof AgentServiceService>;
  readonly environments: MeshClient<typeof EnvironmentServiceService>;
  readonly apiKeys: MeshClient<typeof ApiKeyServiceService>;
}

/** The stand-in for mcp-proxy's binding door. */
export interface FakeProxy {
  readonly address: string;
  readonly bound: BindRequest[];
  /** What the next calls fail with; undefined = they succeed. */
  failure: GanglionError | undefined;
}

/** A PostgreSQL with both schemas and one session service process. */
export class SessionKit {
  readonly postgres: TestPostgres;
  readonly ca: TestCa;
  readonly proxy: FakeProxy;
  readonly #proxyServer: RunningServer;
  readonly #clients: { close(): void }[] = [];
  service: RunningService;

  private constructor(
    postgres: TestPostgres,
    ca: TestCa,
    proxy: FakeProxy,
    server: RunningServer,
    service: RunningService,
  ) {
    this.postgres = postgres;
    this.ca = ca;
    this.proxy = proxy;
    this.#proxyServer = server;
    this.service = service;
  }

  /** Starts everything; `env` goes to the session process. */
  static async start(env: Record<string, string> = {}): Promise<SessionKit> {
    const ca = await TestCa.create();
    const postgres = await startTestPostgres({ authority: ca.authority });
    await migrateProxy(postgres.connection("ganglion_owner"));
    await migrate(postgres.connection("ganglion_owner"));
    const proxy = {
      address: "",
      bound: [] as BindRequest[],
      failure: undefined as GanglionError | undefined,
    };
    const server = await startFakeProxy(await ca.bundle("mcp-proxy"), proxy);
    proxy.address = server.address;
    const service = await startSession(postgres, proxy, env);
    const kit = new SessionKit(postgres, ca, proxy, server, service);
    const text = "INSERT INTO session.workspaces (workspace_id) VALUES ($1)";
    await kit.sql("ganglion_owner", text, [OTHER_WORKSPACE]);
    return kit;
  }

  /** Another replica of the service on the same database. */
  startReplica(env: Record<string, string> = {}): Promise<RunningService> {
    return startSession(this.postgres, this.proxy, env);
  }

  /** A caller with a certificate of that service. */
  async as(
    service: string,
    instance = `${service}-1`,
    address: string | readonly string[] = this.service.listening.addr,
  ): Promise<Caller> {
    return this.#caller(await this.ca.bundle(service, instance), address, undefined);
  }

  /** A client of a workspace, behind the gateway. */
  async asClient(
    workspaceId = "wrkspc_default",
    address: string | readonly string[] = this.service.listening.addr,
  ): Promise<Caller> {
    const metadata = {
      [PRINCIPAL_KEY]: encodeForwardedPrincipal({
        role: Role.ROLE_CLIENT,
        workspaceId,
        keyId: "apikey_test",
        spiffeId: "",
        instance: "",
        peerSpiffeId: "",
      }),
    };
    return this.#caller(await this.ca.bundle("gateway"), address, metadata);
  }

  /** Rows of a statement run as that database role. */
  async sql(role: "ganglion_owner" | "ganglion_session", text: string, values: unknown[] = []) {
    const client = new pg.Client(this.postgres.connection(role));
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** The fence that the proxy holds a session's calls against. */
  async fenceOf(sessionId: string): Promise<{ lowest_epoch: string; ended: boolean } | undefined> {
    const text = "SELECT lowest_epoch, ended FROM proxy.fences WHERE session_id = $1";
    return (await this.sql("ganglion_owner", text, [sessionId]))[0];
  }

  /** Hears what is said on a channel of the database. */
  async listen(channel: string) {
    const client = new pg.Client(this.postgres.connection("ganglion_owner"));
    client.on("error", () => {});
    await client.connect();
    const heard: string[] = [];
    client.on("notification", ({ payload = "" }) => heard.push(payload));
    await client.query(`LISTEN ${channel}`);
    return {
      heard,
      next: async (isWanted: (payload: string) => boolean): Promise<string> => {
        for (;;) {
          const found = heard.find(isWanted);
          if (found !== undefined) return found;
          await once(client, "notification");
        }
      },
      close: () => client.end(),
    };
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.service.stop();
    this.#proxyServer.force();
    await this.postgres.stop();
    this.ca.remove();
  }

  #caller(tls: TlsBundle, address: string | readonly string[], metadata: CallOptions["metadata"]): Caller {
    const make = <D extends Definition>(definition: D): MeshClient<D> => {
      const client = createClient(definition, address, tls, "session", { image: null });
      this.#clients.push(client);
      return metadata ? withMetadata(client, metadata) : client;
    };
    return {
      session: make(SessionServiceService),
      agents: make(AgentServiceService),
      environments: make(EnvironmentServiceService),
      apiKeys: make(ApiKeyServiceService),
    };
  }
}

function withMetadata<C extends object>(client: C, metadata: CallOptions["metadata"]): C {
  return new Proxy(client, {
    get: (target, name) => {
      const method = Reflect.get(target, name);
      if (typeof method !== "function" || name === "close" || name === "waitForReady") return method;
      const call = method as (request: unknown, options: CallOptions) => unknown;
      return (request: unknown, options: CallOptions = {}) => call(request, { ...options, metadata });
    },
  });
}

function startSession(
  postgres: TestPostgres,
  proxy: FakeProxy,
  env: Record<string, string>,
): Promise<RunningService> {
  return startService(MAIN, {
    env: {
      ...postgres.env("ganglion_session"),
      GANGLION_INSTANCE: "session-1",
      GANGLION_LISTEN: "127.0.0.1:0",
      GANGLION_PROXY_ADDR: proxy.address,
      ...env,
    },
  });
}

function startFakeProxy(tls: TlsBundle, proxy: { bound: BindRequest[]; failure: GanglionError | undefined }) {
  return startServer({
    service: "mcp-proxy",
    instance: "mcp-proxy-1",
    listen: "127.0.0.1:0",
    tls,
    image: IMAGE,
    logLevel: "error",
    ownsProcess: false,
    implementations: [
      implement(BindingServiceService, {
        bind: unary(async (request) => {
          if (proxy.failure) throw proxy.failure;
          proxy.bound.push(request);
          return {};
        }),
        issueToken: unary(async () => ({ token: "", tokenId: "" })),
        endBinding: unary(async () => ({})),
        getHandSetup: unary(async () => ({
          egressCaPem: "",
          placeholders: [],
          gitRewrites: [],
          hasEgress: false,
        })),
      }),
    ],
  });
}

/** Bytes of a JSON document. */
export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** A user.message event with one text block. */
export function userMessage(text: string, id = ""): Event {
  const block = { type: "text", data: { $case: "json" as const, value: json({ type: "text", text }) } };
  return Event.fromPartial({ id, body: { $case: "userMessage", value: { content: [block] } } });
}

/** An event from its body. */
export function event(body: NonNullable<Event["body"]>, id = ""): Event {
  return Event.fromPartial({ id, body });
}

/** A turn begins. */
export function running(id = ""): Event {
  return event({ $case: "sessionStatusRunning", value: {} }, id);
}

/** A turn ends: 1 end_turn, 2 requires_action, 4 budget reached. */
export function idle(type: 1 | 2 | 4 = 1, eventIds: string[] = []): Event {
  return event({
    $case: "sessionStatusIdle",
    value: { stopReason: { type, eventIds }, stopDetails: undefined },
  });
}

/** What was used of model and time. */
export function usage(of: Partial<ModelUsage>, activeMs: bigint, listCostMicrocents?: bigint): Event {
  const value = { usage: { ...emptyState().usage, speed: "", ...of }, activeMs, listCostMicrocents };
  return event({ $case: "sessionUsage", value });
}

/** Makes an agent, an environment and sessions from them. */
export async function makeFixture(caller: Caller) {
  const { agent } = await caller.agents.createAgent({
    requestId: "",
    definitionJson: json({ name: "tester", model: "claude-test" }),
    workspaceId: "",
  });
  const { environment } = await caller.environments.createEnvironment({
    requestId: "",
    environmentJson: json({ name: `env ${randomUUID()}` }),
    workspaceId: "",
  });
  if (!agent || !environment) throw new Error("no fixture");
  const create = async (more: Partial<CreateSessionRequest> = {}): Promise<Session> => {
    const { session } = await caller.session.createSession(
      CreateSessionRequest.fromPartial({ agentId: agent.id, environmentId: environment.id, ...more }),
    );
    if (!session) throw new Error("no session");
    return session;
  };
  return { agent, environment, create };
}

/** Appends events. */
export function emit(
  caller: Caller,
  sessionId: string,
  events: Event[],
  more: Partial<EmitEventsRequest> = {},
  options: CallOptions = {},
): Promise<EmitEventsResponse> {
  return caller.session.emitEvents(EmitEventsRequest.fromPartial({ sessionId, events, ...more }), options);
}

/** What `assert.rejects` compares an error of the service with. */
export function refused(code: string, reason: string) {
  return (error: unknown) => {
    if (!(error instanceof GanglionError)) throw error;
    if (error.code !== code || error.reason !== reason) {
      throw new Error(`expected ${code}/${reason}, got ${error.code}/${error.reason}: ${error.message}`);
    }
    return true;
  };
}

/** What `assert.rejects` compares a refusal with that names a field. */
export function refusedField(field: string) {
  return (error: unknown) => {
    refused("INVALID_ARGUMENT", "INVALID_FIELD")(error);
    const fields = (error as GanglionError).violations.map((violation) => violation.field);
    if (!fields.includes(field)) throw new Error(`expected ${field} to be named, got ${fields.join(", ")}`);
    return true;
  };
}

/** A message as plain data: without the room for fields that this version does not know. */
export function plain<T>(message: T): T {
  if (message instanceof Uint8Array) return Buffer.from(message) as T;
  if (Array.isArray(message)) return message.map(plain) as T;
  if (typeof message !== "object" || message === null) return message;
  const entries = Object.entries(message).filter(
    ([name, value]) => name !== "_unknownFields" && value !== undefined,
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, plain(value)])) as T;
}

/** assert.deepEqual for values with messages in them. */
export function same(actual: unknown, expected: unknown): void {
  assert.deepEqual(plain(actual), plain(expected));
}
