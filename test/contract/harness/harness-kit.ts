import { randomUUID } from "node:crypto";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import { AgentServiceService } from "../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { EnvironmentServiceService } from "../../../services/gen/ganglion/agent/v1/environment_service.ts";
import { HarnessServiceService } from "../../../services/gen/ganglion/harness/v1/harness_service.ts";
import {
  CreateSessionRequest,
  EmitEventsRequest,
  SessionServiceService,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { migrate as migrateProxy } from "../../../services/mcp-proxy/store/migrate.ts";
import { migrate as migrateSession } from "../../../services/session/store/migrate.ts";
import { TestCa } from "../../kit/ca.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import { type RunningService, startService } from "../../kit/start-service.ts";
import { PlayedModel } from "./played-model.ts";
import { PlayedProxy } from "./played-proxy.ts";
import { PlayedSandbox } from "./played-sandbox.ts";

const IMAGE = new URL("../../../services/gen/image.binpb", import.meta.url).pathname;
const SESSION_MAIN = new URL("../../../services/session/main.ts", import.meta.url);
const HARNESS_MAIN = new URL("../../../services/harness/main.ts", import.meta.url);

/** Longest a test waits for something that must come. */
const PATIENCE_MS = 25_000;

/** Real harness processes and a real session service on PostgreSQL; hands, proxy and model are played. */
export class HarnessKit {
  readonly ca: TestCa;
  readonly postgres: TestPostgres;
  readonly proxy: PlayedProxy;
  readonly sandbox: PlayedSandbox;
  readonly model: PlayedModel;
  readonly harnesses = new Map<string, RunningService>();
  session!: RunningService;
  client!: MeshClient<typeof SessionServiceService>;
  readonly #clients: { close(): void }[] = [];
  #environmentId = "";

  private constructor(
    ca: TestCa,
    postgres: TestPostgres,
    played: { proxy: PlayedProxy; sandbox: PlayedSandbox; model: PlayedModel },
  ) {
    this.ca = ca;
    this.postgres = postgres;
    this.proxy = played.proxy;
    this.sandbox = played.sandbox;
    this.model = played.model;
  }

  /** Starts everything but the harnesses. */
  static async start(): Promise<HarnessKit> {
    const ca = await TestCa.create();
    const postgres = await startTestPostgres({ authority: ca.authority });
    await migrateProxy(postgres.connection("ganglion_owner"));
    await migrateSession(postgres.connection("ganglion_owner"));
    const kit = new HarnessKit(ca, postgres, {
      proxy: await PlayedProxy.start(await ca.bundle("mcp-proxy"), IMAGE),
      sandbox: await PlayedSandbox.start(await ca.bundle("sandbox"), IMAGE),
      model: await PlayedModel.start(await ca.bundle("mcp-proxy")),
    });
    kit.session = await startService(SESSION_MAIN, {
      env: {
        ...postgres.env("ganglion_session"),
        GANGLION_INSTANCE: "session-1",
        GANGLION_LISTEN: "127.0.0.1:0",
        GANGLION_PROXY_ADDR: kit.proxy.address,
      },
    });
    await kit.#connect();
    return kit;
  }

  /** Starts a harness process. */
  async harness(instance: string, env: Record<string, string> = {}): Promise<RunningService> {
    const service = await startService(HARNESS_MAIN, {
      env: { ...(await this.harnessEnv(instance)), ...env },
    });
    this.harnesses.set(instance, service);
    return service;
  }

  /** The settings of a harness process. */
  async harnessEnv(instance: string): Promise<Record<string, string>> {
    return {
      GANGLION_INSTANCE: instance,
      GANGLION_LISTEN: "127.0.0.1:0",
      GANGLION_TLS_DIR: await this.ca.directory("harness", instance),
      GANGLION_SESSION_ADDR: this.session.listening.addr,
      GANGLION_SANDBOX_ADDR: this.sandbox.address,
      GANGLION_PROXY_ADDR: this.proxy.address,
      GANGLION_PROXY_HTTP_ADDR: this.model.address,
      GANGLION_HARNESS_POLL_MS: "300",
      GANGLION_HARNESS_LINGER_MS: "300",
    };
  }

  /** HarnessService of a process, for an operator. */
  async operate(instance: string): Promise<MeshClient<typeof HarnessServiceService>> {
    const { addr } = this.harnesses.get(instance)!.listening;
    const client = createClient(HarnessServiceService, addr, await this.ca.bundle("operator"), "harness");
    this.#clients.push(client);
    return client;
  }

  /** Makes a session. */
  async newSession(agent: Record<string, unknown> = {}): Promise<TestSession> {
    const agents = createClient(
      AgentServiceService,
      this.session.listening.addr,
      await this.ca.bundle("operator"),
      "session",
    );
    this.#clients.push(agents);
    const definition = {
      name: "tester",
      model: "claude-test",
      tools: [{ type: "agent_toolset_20260401" }],
      ...agent,
    };
    const made = await agents.createAgent({
      requestId: "",
      definitionJson: Buffer.from(JSON.stringify(definition)),
      workspaceId: "",
    });
    const { session } = await this.client.createSession(
      CreateSessionRequest.fromPartial({ agentId: made.agent!.id, environmentId: this.#environmentId }),
    );
    return new TestSession(this.client, session!.id);
  }

  async stop(): Promise<void> {
    for (const harness of this.harnesses.values()) await harness.stop();
    for (const client of this.#clients) client.close();
    await this.session?.stop();
    this.model.stop();
    this.proxy.stop();
    this.sandbox.stop();
    await this.postgres.stop();
    this.ca.remove();
  }

  async #connect(): Promise<void> {
    const { addr } = this.session.listening;
    const tls = await this.ca.bundle("operator");
    this.client = createClient(SessionServiceService, addr, tls, "session");
    const environments = createClient(EnvironmentServiceService, addr, tls, "session");
    this.#clients.push(this.client, environments);
    const { environment } = await environments.createEnvironment({
      requestId: "",
      environmentJson: Buffer.from(JSON.stringify({ name: `env ${randomUUID()}` })),
      workspaceId: "",
    });
    this.#environmentId = environment!.id;
  }
}

type Body = NonNullable<Event["body"]>;

/** One session as its client sees it. */
export class TestSession {
  readonly id: string;
  readonly #client: MeshClient<typeof SessionServiceService>;

  constructor(client: MeshClient<typeof SessionServiceService>, id: string) {
    this.#client = client;
    this.id = id;
  }

  /** Appends client events. */
  async emit(...bodies: Body[]): Promise<void> {
    const events = bodies.map((body) => Event.fromPartial({ body }));
    await this.#client.emitEvents(EmitEventsRequest.fromPartial({ sessionId: this.id, events }));
  }

  /** Says something. */
  say(words: string): Promise<void> {
    const value = Buffer.from(JSON.stringify({ type: "text", text: words }));
    const content = [{ type: "text", data: { $case: "json" as const, value } }];
    return this.emit({ $case: "userMessage", value: { content } });
  }

  /** Events until the n-th of a type, which must come. */
  async until(type: string, count = 1): Promise<Event[]> {
    const seen: Event[] = [];
    const signal = AbortSignal.timeout(PATIENCE_MS);
    try {
      const request = WatchEventsRequest.fromPartial({ sessionId: this.id });
      let left = count;
      for await (const { message } of this.#client.watchEvents(request, { signal })) {
        if (message?.$case !== "event") continue;
        seen.push(message.value);
        if (message.value.type === type && --left === 0) return seen;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    throw new Error(`${type} did not come; the log has: ${seen.map((event) => event.type).join(" ")}`);
  }

  /** Previews and events from now on, as they come. */
  watch(signal: AbortSignal) {
    const request = WatchEventsRequest.fromPartial({
      sessionId: this.id,
      fromHead: true,
      includePreviews: true,
    });
    return this.#client.watchEvents(request, { signal });
  }
}

/** Bodies of one kind among events, in order. */
export function bodies<K extends Body["$case"]>(
  events: readonly Event[],
  kind: K,
): Extract<Body, { $case: K }>["value"][] {
  return events.flatMap(({ body }) => (body?.$case === kind ? [body.value as never] : []));
}
