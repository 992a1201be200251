import type { Hono } from "hono";
import type { Agent } from "../../gen/ganglion/agent/v1/agent_service.ts";
import { flagOf, limitOf, one, readQuery, wholeOf } from "../domain/page-query.ts";
import { invalid } from "../domain/refuse.ts";
import { agentToJson } from "../domain/resource-to-json.ts";
import { fromRfc3339 } from "../domain/timestamps.ts";
import { answer } from "./answer.ts";
import { readBody } from "./read-body.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

const LIST_KEYS = ["limit", "page", "include_archived", "created_at[gte]", "created_at[lte]"];

/** agentRoutes adds /v1/agents. The registry checks and resolves definitions; nothing is decided here. */
export function agentRoutes(app: Hono<{ Variables: RestVariables }>, { agents }: RestDeps): void {
  const show = (agent: Agent | undefined) => agentToJson(agent as Agent);

  app.post("/v1/agents", async (c) => {
    const definitionJson = Buffer.from(JSON.stringify(await readBody(c)));
    const { agent } = await agents.createAgent(
      { requestId: c.get("requestId"), definitionJson, workspaceId: "" },
      c.get("call"),
    );
    return answer(c, show(agent));
  });

  app.get("/v1/agents", async (c) => {
    const query = readQuery(new URL(c.req.url).search, LIST_KEYS);
    const time = (name: string) => {
      const text = one(query, name);
      return text === undefined ? undefined : fromRfc3339(text, name);
    };
    const page = await agents.listAgents(
      {
        pageSize: limitOf(query, 20, 100),
        pageToken: one(query, "page") ?? "",
        includeArchived: flagOf(query, "include_archived"),
        createdAtOrAfter: time("created_at[gte]"),
        createdAtOrBefore: time("created_at[lte]"),
        workspaceId: "",
      },
      c.get("call"),
    );
    return answer(c, { data: page.agents.map(show), next_page: page.nextPageToken || null });
  });

  app.get("/v1/agents/:id", async (c) => {
    const query = readQuery(new URL(c.req.url).search, ["version"]);
    const request = { agentId: c.req.param("id"), version: wholeOf(query, "version") };
    const { agent } = await agents.getAgent(request, c.get("call"));
    return answer(c, show(agent));
  });

  app.post("/v1/agents/:id", async (c) => {
    const { version, ...patch } = await readBody(c);
    const isVersion = version === undefined || (Number.isInteger(version) && (version as number) >= 1);
    if (!isVersion) throw invalid("version", "must be a whole number from 1");
    const { agent } = await agents.updateAgent(
      {
        agentId: c.req.param("id"),
        expectedVersion: (version as number | undefined) ?? 0,
        patchJson: Buffer.from(JSON.stringify(patch)),
      },
      c.get("call"),
    );
    return answer(c, show(agent));
  });

  app.post("/v1/agents/:id/archive", async (c) => {
    const { agent } = await agents.archiveAgent({ agentId: c.req.param("id") }, c.get("call"));
    return answer(c, show(agent));
  });

  app.get("/v1/agents/:id/versions", async (c) => {
    const query = readQuery(new URL(c.req.url).search, ["limit", "page"]);
    const page = await agents.listAgentVersions(
      { agentId: c.req.param("id"), pageSize: limitOf(query, 20, 100), pageToken: one(query, "page") ?? "" },
      c.get("call"),
    );
    return answer(c, { data: page.agents.map(show), next_page: page.nextPageToken || null });
  });
}
