import { unary } from "../../../common/grpc/handlers.ts";
import type {
  DeleteSessionRequest,
  DeleteSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import type { Deps } from "../deps.ts";
import { checkSessionId } from "./get-session.ts";

/** Removes a session's record and log. */
export const deleteSession = (deps: Deps) =>
  unary<DeleteSessionRequest, DeleteSessionResponse>(async ({ sessionId }, ctx) => {
    checkSessionId(sessionId);
    const isDeleted = await deps.sessions.delete(sessionId, scopeOf(callerOf(ctx)), ctx.signal);
    if (!isDeleted) throw sessionNotFound(sessionId);
    deps.announce(sessionId, false);
    return {};
  });
