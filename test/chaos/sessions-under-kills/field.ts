import { randomUUID } from "node:crypto";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import { AgentServiceService } from "../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { EnvironmentServiceService } from "../../../services/gen/ganglion/agent/v1/environment_service.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { startMcpCounter, type TestMcpCounter } from "../../kit/mcp-counter.ts";
import { TestMesh } from "../../kit/mesh.ts";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";

/** A client may have 1,000 streams on a connection. */
const CONNECTIONS = 8;
const MODEL = "claude-opus-5-5";

/** A whole mesh to be killed part by part, and around it what is not: a model, an MCP server that counts, clients. */
export class Field {
  readonly mesh: TestMesh;
  readonly counter: TestMcpCounter;
  readonly #model: TestModel;
  readonly #clients: MeshClient<typeof SessionServiceService>[];
  agentId = "";
  environmentId = "";
  vaultId = "";

  private constructor(mesh: TestMesh, counter: TestMcpCounter, model: TestModel) {
    this.mesh = mesh;
    this.counter = counter;
    this.#model = model;
    const tls = mesh.tls("operator");
    this.#clients = Array.from({ length: CONNECTIONS }, () =>
      createClient(SessionServiceService, mesh.grpc, tls, "gateway"),
    );
  }

  /** Starts everything. */
  static async start(): Promise<Field> {
    const [counter, model] = [await startMcpCounter(), await startScriptedModel()];
    const mesh = await TestMesh.start({
      args: ["--scripted-model-url", model.url, "--allow-http-hosts", new URL(counter.url).host],
    });
    const field = new Field(mesh, counter, model);
    await field.#furnish();
    return field;
  }

  /** A client at the public gRPC address. */
  client(n: number): MeshClient<typeof SessionServiceService> {
    return this.#clients[n % CONNECTIONS] as MeshClient<typeof SessionServiceService>;
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.mesh.stop();
    await this.counter.stop();
    await this.#model.stop();
  }

  async #furnish(): Promise<void> {
    const vault = await this.#cli(["vault", "create", "kills", "--json"]);
    this.vaultId = (JSON.parse(vault) as { id: string }).id;
    await this.#cli(["vault", "put", this.vaultId, "--mcp-url", this.counter.url], this.counter.token);
    await this.#cli(["vault", "model-key", "--url", this.#model.url], this.#model.apiKey);
    const tls = this.mesh.tls("operator");
    const agents = createClient(AgentServiceService, this.mesh.grpc, tls, "gateway");
    const environments = createClient(EnvironmentServiceService, this.mesh.grpc, tls, "gateway");
    const { agent } = await agents.createAgent({
      requestId: randomUUID(),
      definitionJson: json({
        name: "kills",
        model: MODEL,
        mcp_servers: [{ type: "url", name: "counter", url: this.counter.url }],
        tools: [
          { type: "agent_toolset_20260401" },
          {
            type: "mcp_toolset",
            mcp_server_name: "counter",
            default_config: { enabled: true, permission_policy: { type: "always_allow" } },
          },
        ],
      }),
      workspaceId: "",
    });
    const { environment } = await environments.createEnvironment({
      requestId: randomUUID(),
      environmentJson: json({ name: "kills" }),
      workspaceId: "",
    });
    for (const client of [agents, environments]) client.close();
    this.agentId = agent?.id ?? "";
    this.environmentId = environment?.id ?? "";
  }

  async #cli(args: readonly string[], stdin?: string): Promise<string> {
    const { code, stdout, stderr } = await this.mesh.cli(args, stdin);
    if (code !== 0) throw new Error(`ganglion ${args[0]} ${args[1]} ended with ${code}: ${stderr}`);
    return stdout;
  }
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
