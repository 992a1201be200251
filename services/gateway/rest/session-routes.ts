import type { Hono } from "hono";
import { newId } from "../../common/ids/new-id.ts";
import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import { readQuery } from "../domain/page-query.ts";
import { sessionToJson } from "../domain/resource-to-json.ts";
import {
  createSessionRequest,
  listSessionsRequest,
  SESSION_LIST_KEYS,
  updateSessionRequest,
} from "../domain/session-request.ts";
import { answer } from "./answer.ts";
import { archiveOwnVault, makeOwnVault, removeOwnVault } from "./own-vault.ts";
import { readBody } from "./read-body.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

/** sessionRoutes adds /v1/sessions. */
export function sessionRoutes(app: Hono<{ Variables: RestVariables }>, deps: RestDeps): void {
  const { sessions } = deps;
  const show = (session: Session | undefined) => sessionToJson(session as Session, new Date());

  app.post("/v1/sessions", async (c) => {
    const mintId = () => newId("sevt");
    const { request, tokens } = createSessionRequest(await readBody(c), c.get("requestId"), mintId);
    const ownVaultId = await makeOwnVault(deps, c, tokens);
    try {
      return answer(
        c,
        show((await sessions.createSession({ ...request, ownVaultId }, c.get("call"))).session),
      );
    } catch (error) {
      await removeOwnVault(deps, c, ownVaultId);
      throw error;
    }
  });

  app.get("/v1/sessions", async (c) => {
    const request = listSessionsRequest(readQuery(new URL(c.req.url).search, SESSION_LIST_KEYS));
    const page = await sessions.listSessions(request, c.get("call"));
    return answer(c, {
      data: page.sessions.map(show),
      next_page: page.nextPageToken || null,
      prev_page: null,
    });
  });

  app.get("/v1/sessions/:id", async (c) => {
    const request = { sessionId: c.req.param("id") };
    return answer(c, show((await sessions.getSession(request, c.get("call"))).session));
  });

  app.post("/v1/sessions/:id", async (c) => {
    const request = updateSessionRequest(c.req.param("id"), await readBody(c));
    return answer(c, show((await sessions.updateSession(request, c.get("call"))).session));
  });

  app.post("/v1/sessions/:id/archive", async (c) => {
    const { session } = await sessions.archiveSession({ sessionId: c.req.param("id") }, c.get("call"));
    await archiveOwnVault(deps, c, session);
    return answer(c, show(session));
  });

  app.delete("/v1/sessions/:id", async (c) => {
    const sessionId = c.req.param("id");
    const { session } = await sessions.getSession({ sessionId }, c.get("call"));
    await sessions.deleteSession({ sessionId }, c.get("call"));
    await archiveOwnVault(deps, c, session);
    return answer(c, { id: sessionId, type: "session_deleted" });
  });
}
