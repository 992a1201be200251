import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  GetSessionRequest,
  GetSessionResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Returns a session's record. */
export const getSession = (deps: Deps) =>
  unary<GetSessionRequest, GetSessionResponse>(async ({ sessionId }, ctx) => {
    checkSessionId(sessionId);
    const session = await deps.sessions.get(sessionId, scopeOf(callerOf(ctx)), ctx.signal);
    if (!session) throw sessionNotFound(sessionId);
    return { session };
  });

/** Checks a request that names a session and nothing else. */
export function checkSessionId(sessionId: string): void {
  const violations = new Violations();
  checkId(violations, "session_id", sessionId);
  violations.throwIfAny();
}
