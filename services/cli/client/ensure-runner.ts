import type { Mesh } from "./connect-mesh.ts";

const NAME = "ganglion run";

/** ensureEnvironment returns the environment that `ganglion run` uses, and makes it the first time. */
export async function ensureEnvironment({ environments }: Mesh): Promise<string> {
  for (let pageToken = ""; ; ) {
    const page = await environments.listEnvironments({
      pageSize: 100,
      pageToken,
      includeArchived: false,
      workspaceId: "",
    });
    const found = page.environments.find(({ name }) => name === NAME);
    if (found) return found.id;
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  const environmentJson = Buffer.from(JSON.stringify({ name: NAME, config: { type: "cloud" } }));
  const { environment } = await environments.createEnvironment({
    requestId: "",
    environmentJson,
    workspaceId: "",
  });
  return environment?.id ?? "";
}

/** ensureAgent returns the agent that `ganglion run` uses with a model, and makes it the first time. */
export async function ensureAgent({ agents }: Mesh, model: string): Promise<string> {
  const name = `${NAME} (${model})`;
  for (let pageToken = ""; ; ) {
    const page = await agents.listAgents({
      pageSize: 100,
      pageToken,
      includeArchived: false,
      createdAtOrAfter: undefined,
      createdAtOrBefore: undefined,
      workspaceId: "",
    });
    const found = page.agents.find((agent) => agent.name === name);
    if (found) return found.id;
    pageToken = page.nextPageToken;
    if (!pageToken) break;
  }
  const definition = {
    name,
    model,
    system: "You work in a sandbox without a network. Use your tools, and say briefly what you found.",
    tools: [
      {
        type: "agent_toolset_20260401",
        configs: [
          { name: "web_search", enabled: false },
          { name: "web_fetch", enabled: false },
        ],
      },
    ],
  };
  const definitionJson = Buffer.from(JSON.stringify(definition));
  const { agent } = await agents.createAgent({ requestId: "", definitionJson, workspaceId: "" });
  return agent?.id ?? "";
}
