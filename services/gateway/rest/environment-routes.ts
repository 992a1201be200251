import type { Hono } from "hono";
import type { Environment } from "../../gen/ganglion/agent/v1/environment_service.ts";
import { flagOf, limitOf, one, readQuery } from "../domain/page-query.ts";
import { environmentToJson } from "../domain/resource-to-json.ts";
import { answer } from "./answer.ts";
import { readBody } from "./read-body.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

/** environmentRoutes adds /v1/environments. */
export function environmentRoutes(app: Hono<{ Variables: RestVariables }>, { environments }: RestDeps): void {
  const show = (environment: Environment | undefined) => environmentToJson(environment as Environment);

  app.post("/v1/environments", async (c) => {
    const environmentJson = Buffer.from(JSON.stringify(await readBody(c)));
    const request = { requestId: c.get("requestId"), environmentJson, workspaceId: "" };
    const { environment } = await environments.createEnvironment(request, c.get("call"));
    return answer(c, show(environment));
  });

  app.get("/v1/environments", async (c) => {
    const query = readQuery(new URL(c.req.url).search, ["limit", "page", "include_archived"]);
    const page = await environments.listEnvironments(
      {
        pageSize: limitOf(query, 20, 100),
        pageToken: one(query, "page") ?? "",
        includeArchived: flagOf(query, "include_archived"),
        workspaceId: "",
      },
      c.get("call"),
    );
    return answer(c, { data: page.environments.map(show), next_page: page.nextPageToken || null });
  });

  app.get("/v1/environments/:id", async (c) => {
    const request = { environmentId: c.req.param("id") };
    return answer(c, show((await environments.getEnvironment(request, c.get("call"))).environment));
  });

  app.post("/v1/environments/:id", async (c) => {
    const patchJson = Buffer.from(JSON.stringify(await readBody(c)));
    const request = { environmentId: c.req.param("id"), patchJson };
    return answer(c, show((await environments.updateEnvironment(request, c.get("call"))).environment));
  });

  app.delete("/v1/environments/:id", async (c) => {
    const environmentId = c.req.param("id");
    await environments.deleteEnvironment({ environmentId }, c.get("call"));
    return answer(c, { id: environmentId, type: "environment_deleted" });
  });

  app.post("/v1/environments/:id/archive", async (c) => {
    const request = { environmentId: c.req.param("id") };
    return answer(c, show((await environments.archiveEnvironment(request, c.get("call"))).environment));
  });
}
