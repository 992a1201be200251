import { Hono } from "hono";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import { notYet } from "../domain/refuse.ts";
import { admit } from "./admit.ts";
import { agentRoutes } from "./agent-routes.ts";
import { answerError } from "./answer.ts";
import { credentialRoutes } from "./credential-routes.ts";
import { environmentRoutes } from "./environment-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import type { OpenStreams } from "./open-streams.ts";
import { resourceRoutes } from "./resource-routes.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";
import { sessionRoutes } from "./session-routes.ts";
import { vaultRoutes } from "./vault-routes.ts";

/** Parts of the API that this version does not have. They are refused by name, so that nobody takes them for a typo. */
const MISSING = [
  /^\/v1\/(memory_stores|files|skills|deployments|deployment_runs|dreams|tunnels)(\/|$)/,
  /^\/v1\/environments\/[^/]+\/(work)(\/|$)/,
  /^\/v1\/sessions\/[^/]+\/(resources|threads)(\/|$)/,
];

/** createApp makes the REST API. */
export function createApp(deps: RestDeps): { app: Hono<{ Variables: RestVariables }>; streams: OpenStreams } {
  const app = new Hono<{ Variables: RestVariables }>();
  app.use("*", admit(deps));
  agentRoutes(app, deps);
  environmentRoutes(app, deps);
  sessionRoutes(app, deps);
  resourceRoutes(app, deps);
  vaultRoutes(app, deps);
  credentialRoutes(app, deps);
  const streams = eventRoutes(app, deps);
  app.notFound((c) => {
    const name = MISSING.map((form) => form.exec(c.req.path)?.[1]).find((found) => found !== undefined);
    return answerError(c, name ? notYet(name) : routeNotFound());
  });
  app.onError((error, c) => {
    // Nothing is known of the request when the very first step failed.
    if (!c.get("requestId")) c.set("requestId", newId("req"));
    if (!(error instanceof GanglionError)) {
      deps.log.error({ err: error, trace_id: c.get("traceId") }, "a request failed by a bug");
    }
    return answerError(c, error);
  });
  return { app, streams };
}

function routeNotFound(): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "ROUTE_NOT_FOUND",
    message: "there is no such route",
  });
}
