import type { Hono } from "hono";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import { limitOf, readQuery } from "../domain/page-query.ts";
import { invalid, refuseUnknown } from "../domain/refuse.ts";
import { repositoryToJson } from "../domain/resource-to-json.ts";
import { requiredSecret } from "../domain/secret-text.ts";
import { answer } from "./answer.ts";
import { replaceToken } from "./own-vault.ts";
import { readBody } from "./read-body.ts";
import type { RestContext, RestDeps, RestVariables } from "./rest-deps.ts";

/** resourceRoutes adds what can be read and changed of /v1/sessions/{id}/resources: repositories and their tokens. */
export function resourceRoutes(app: Hono<{ Variables: RestVariables }>, deps: RestDeps): void {
  const AT = "/v1/sessions/:id/resources";

  const sessionOf = async (c: RestContext): Promise<Session> => {
    const request = { sessionId: c.req.param("id") as string };
    return (await deps.sessions.getSession(request, c.get("call"))).session as Session;
  };
  const repositoryOf = (c: RestContext, session: Session): Repository => {
    const found = session.repositories.find(({ id }) => id === c.req.param("resource"));
    if (found) return found;
    throw new GanglionError({ code: "NOT_FOUND", reason: "RESOURCE_NOT_FOUND", message: "no such resource" });
  };

  app.get(AT, async (c) => {
    // A session has at most 20: they are one page, whatever is asked for.
    limitOf(readQuery(new URL(c.req.url).search, ["limit", "page"]), 20, 1000);
    const session = await sessionOf(c);
    const data = session.repositories.map((repository) => repositoryToJson(repository, session));
    return answer(c, { data, next_page: null });
  });

  app.get(`${AT}/:resource`, async (c) => {
    const session = await sessionOf(c);
    return answer(c, repositoryToJson(repositoryOf(c, session), session));
  });

  app.post(`${AT}/:resource`, async (c) => {
    const body = await readBody(c);
    refuseUnknown(body, ["authorization_token"]);
    const token = requiredSecret(body.authorization_token, "authorization_token");
    const session = await sessionOf(c);
    const repository = repositoryOf(c, session);
    if (!(await replaceToken(deps, c, session.ownVaultId, { url: repository.url, token }))) {
      throw invalid("authorization_token", "replaces one, and the repository was given without");
    }
    return answer(c, repositoryToJson(repository, session));
  });
}
