import { randomUUID } from "node:crypto";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { sealSecret } from "../../../services/common/seal/seal-secret.ts";
import { AgentServiceService } from "../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { EnvironmentServiceService } from "../../../services/gen/ganglion/agent/v1/environment_service.ts";
import { VaultServiceService } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import type { CrashMesh } from "../../kit/crash/crash-mesh.ts";
import type { CrashWorld } from "../../kit/crash/crash-world.ts";
import { AGENTS, type AgentName, METADATA } from "./agents.ts";

const MODEL = "claude-opus-5-5";

/** What all sessions of a mesh are made of. */
export interface Furniture {
  readonly agentIds: Record<AgentName, string>;
  readonly environmentId: string;
  readonly vaultId: string;
}

/** furnish stores the credentials and makes the agents. */
export async function furnish(mesh: CrashMesh, { model, mcp }: CrashWorld): Promise<Furniture> {
  const at = (name: string) => mesh.addresses[name] as string;
  const vaults = createClient(VaultServiceService, at("mcp-proxy-1"), mesh.operator, "mcp-proxy");
  const agents = createClient(AgentServiceService, at("session-1"), mesh.operator, "session");
  const environments = createClient(EnvironmentServiceService, at("session-1"), mesh.operator, "session");
  const key = await vaults.getSealingKey({});
  const noMore = { refreshToken: undefined, clientSecret: undefined };
  const common = { requestId: "", displayName: "crash", metadata: {} };
  const { vault: system } = await vaults.getSystemVault({ workspaceId: "" });
  const forModel = { vaultId: system?.id ?? "", purpose: "model_api_key", destination: model.url };
  await vaults.createCredential({
    ...common,
    vaultId: forModel.vaultId,
    auth: { $case: "modelApiKey", value: { baseUrl: model.url } },
    secret: await sealSecret(key, forModel, model.apiKey),
    ...noMore,
  });
  const { vault } = await vaults.createVault({ ...common, workspaceId: "", isDecoy: false });
  const forMcp = { vaultId: vault?.id ?? "", purpose: "static_bearer", destination: mcp.url };
  await vaults.createCredential({
    ...common,
    vaultId: forMcp.vaultId,
    auth: { $case: "staticBearer", value: { mcpServerUrl: mcp.url } },
    secret: await sealSecret(key, forMcp, mcp.token),
    ...noMore,
  });
  const { environment } = await environments.createEnvironment({
    requestId: randomUUID(),
    environmentJson: json({ name: "crash" }),
    workspaceId: "",
  });
  const agentIds = {} as Record<AgentName, string>;
  for (const [name, tools] of Object.entries(AGENTS) as [AgentName, object[]][]) {
    const servers = [{ type: "url", name: "counter", url: mcp.url }];
    const usesServer = tools.some((tool) => "mcp_server_name" in tool);
    const definition = {
      ...{ name, model: MODEL, system: "You are a test.", tools },
      mcp_servers: usesServer ? servers : [],
      metadata: METADATA[name] ?? {},
    };
    const { agent } = await agents.createAgent({
      requestId: randomUUID(),
      definitionJson: json(definition),
      workspaceId: "",
    });
    agentIds[name] = agent?.id ?? "";
  }
  for (const client of [vaults, agents, environments]) client.close();
  return { agentIds, environmentId: environment?.id ?? "", vaultId: forMcp.vaultId };
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
