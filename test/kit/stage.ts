import Anthropic from "@anthropic-ai/sdk";
import { GanglionError } from "../../services/common/errors/ganglion-error.ts";
import { createClient, type MeshClient } from "../../services/common/grpc/create-client.ts";
import { SandboxServiceService } from "../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import {
  SessionServiceService,
  type WatchEventsResponse,
} from "../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { startMcpUpstream, type TestMcpUpstream } from "./mcp-upstream.ts";
import { TestMesh } from "./mesh.ts";
import { readLog } from "./read-log.ts";
import { startScriptedModel, type TestModel } from "./scripted-model.ts";

const TURN_MS = 60_000;
const READY_MS = 20_000;
const MODEL = "claude-opus-5-5";

/** How a stage is set. */
export interface StageOptions {
  /** Let the mesh run the scripted model as a part of its own; there is no journal of it then. */
  readonly ownModel?: boolean;
  /** Further hosts (host:port) whose MCP servers sessions may reach over plain HTTP. */
  readonly httpHosts?: readonly string[];
  /** Further arguments of `ganglion up`. */
  readonly upArgs?: readonly string[];
}

/**
 * Stage is a whole mesh with the world around it: a model and a third-party MCP server that keep journals, their
 * credentials in the vault, an agent that may use everything, and clients to play with.
 */
export class Stage {
  readonly mesh: TestMesh;
  readonly mcp: TestMcpUpstream;
  readonly #model: TestModel | undefined;
  readonly sdk: Anthropic;
  readonly sessions: MeshClient<typeof SessionServiceService>;
  readonly hands: MeshClient<typeof SandboxServiceService>;
  agentId = "";
  environmentId = "";
  vaultId = "";

  private constructor(mesh: TestMesh, mcp: TestMcpUpstream, model: TestModel | undefined) {
    this.mesh = mesh;
    this.mcp = mcp;
    this.#model = model;
    // What is refused as UNAVAILABLE may be tried again: a part that was just restarted is not known to all others yet.
    this.sdk = new Anthropic({ baseURL: mesh.rest, apiKey: mesh.apiKey, maxRetries: 5, timeout: 30_000 });
    const operator = mesh.tls("operator");
    this.sessions = createClient(SessionServiceService, mesh.grpc, operator, "gateway");
    this.hands = createClient(SandboxServiceService, mesh.grpc, operator, "gateway");
  }

  /** Starts everything. */
  static async start({ ownModel = false, httpHosts = [], upArgs = [] }: StageOptions = {}): Promise<Stage> {
    const mcp = await startMcpUpstream();
    const model = ownModel ? undefined : await startScriptedModel();
    const mesh = await TestMesh.start({
      args: [
        ...(model ? ["--scripted-model-url", model.url] : ["--scripted-model"]),
        ...upArgs,
        ...["--allow-http-hosts", [new URL(mcp.url).host, ...httpHosts].join()],
      ],
    });
    const stage = new Stage(mesh, mcp, model);
    await stage.#furnish();
    return stage;
  }

  /** The model outside the mesh. */
  get model(): TestModel {
    if (!this.#model) throw new Error("this stage's model is a part of the mesh");
    return this.#model;
  }

  /** Makes a session; returns its id. */
  async newSession(title = ""): Promise<string> {
    const { id } = await this.sdk.beta.sessions.create({
      agent: this.agentId,
      environment_id: this.environmentId,
      vault_ids: [this.vaultId],
      title,
    });
    return id;
  }

  /** Sends a user's message. */
  async send(sessionId: string, text: string): Promise<void> {
    const content = [{ type: "text" as const, text }];
    await this.sdk.beta.sessions.events.send(sessionId, { events: [{ type: "user.message", content }] });
  }

  /** Sends a message and collects the turn's events; `see` looks at each message of the watch as it comes. */
  async turn(
    sessionId: string,
    text: string,
    see: (message: WatchEventsResponse) => unknown = () => {},
  ): Promise<Event[]> {
    const { session } = await this.sessions.getSession({ sessionId });
    const head = session?.headPosition ?? 0n;
    await this.send(sessionId, text);
    return this.until(sessionId, head, "session.status_idle", see);
  }

  /**
   * Collects events after a position up to the first of a type. When the connection is lost it waits until the mesh is
   * whole, and goes on where it was.
   */
  async until(
    sessionId: string,
    afterPosition: bigint,
    type: string,
    see: (message: WatchEventsResponse) => unknown = () => {},
  ): Promise<Event[]> {
    const events: Event[] = [];
    const signal = AbortSignal.timeout(TURN_MS);
    let position = afterPosition;
    for (;;) {
      const request = {
        sessionId,
        afterPosition: position,
        types: [],
        includePreviews: true,
        fromHead: false,
      };
      try {
        for await (const answer of this.sessions.watchEvents(request, { signal, waitForReady: true })) {
          position = answer.position;
          if (answer.message?.$case === "event") events.push(answer.message.value);
          await see(answer);
          if (events.at(-1)?.type === type) return events;
        }
      } catch (error) {
        if (!(error instanceof GanglionError) || error.code !== "UNAVAILABLE") {
          const types = events.map((event) => event.type).join(", ");
          throw new Error(`no ${type} came; seen: ${types}`, { cause: error });
        }
      }
      await this.whole();
    }
  }

  /** The session's whole log. */
  log(sessionId: string): Promise<Event[]> {
    return readLog(sessionId, (request) => this.sessions.getEvents(request));
  }

  /** Name of the harness that drives a session now: "harness-1". */
  async brainOf(sessionId: string): Promise<string> {
    const { lease } = await this.sessions.getLease({ sessionId });
    const name = lease?.owner.split("/").at(-1);
    if (!name) throw new Error(`nobody drives ${sessionId}`);
    return name;
  }

  /** Resolves when every part of the mesh is ready, and can be reached from here. */
  async whole(): Promise<void> {
    const names = new Set([...PARTS, ...Object.keys(this.mesh.pids())]);
    await Promise.all([...names].map((name) => this.mesh.ready(name)));
    // Our own connections may be between two attempts.
    await Promise.all([this.sessions, this.hands].map((client) => client.waitForReady(READY_MS)));
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    this.sessions.close();
    this.hands.close();
    await this.mesh.stop();
    await this.mcp.stop();
    await this.#model?.stop();
  }

  async #furnish(): Promise<void> {
    const vault = await this.#cli(["vault", "create", "stage", "--json"]);
    this.vaultId = (JSON.parse(vault) as { id: string }).id;
    await this.#cli(["vault", "put", this.vaultId, "--mcp-url", this.mcp.url], this.mcp.token);
    if (this.#model) await this.#cli(["vault", "model-key", "--url", this.#model.url], this.#model.apiKey);
    this.environmentId = (await this.sdk.beta.environments.create({ name: "stage" })).id;
    const agent = await this.sdk.beta.agents.create({
      name: "stage",
      model: MODEL,
      system: "You are a test.",
      mcp_servers: [{ type: "url", name: "everything", url: this.mcp.url }],
      tools: [
        { type: "agent_toolset_20260401" },
        {
          type: "mcp_toolset",
          mcp_server_name: "everything",
          default_config: { enabled: true, permission_policy: { type: "always_allow" } },
        },
      ],
    });
    this.agentId = agent.id;
  }

  async #cli(args: readonly string[], stdin?: string): Promise<string> {
    const { code, stdout, stderr } = await this.mesh.cli(args, stdin);
    if (code !== 0) throw new Error(`ganglion ${args[0]} ${args[1]} ended with ${code}: ${stderr}`);
    return stdout;
  }
}

/** The parts that every mesh on one machine has. */
export const PARTS = [
  "postgres",
  "vault",
  "session-1",
  "mcp-proxy-1",
  "sandbox-1",
  "harness-1",
  "harness-2",
  "gateway-1",
] as const;

/** A message for the scripted model that plays these steps, one a turn of the model. */
export function script(
  steps: readonly { text?: string; calls?: readonly { name: string; input: object }[] }[],
  words = "",
): string {
  return `scenario: steps ${words}\n\`\`\`json\n${JSON.stringify(steps)}\n\`\`\``;
}
