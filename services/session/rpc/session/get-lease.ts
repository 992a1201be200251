import { unary } from "../../../common/grpc/handlers.ts";
import type { GetLeaseRequest, GetLeaseResponse } from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import type { Deps } from "../deps.ts";
import { checkSessionId } from "./get-session.ts";

/** Says who drives a session and whether that harness is alive. */
export const getLease = (deps: Deps) =>
  unary<GetLeaseRequest, GetLeaseResponse>(async ({ sessionId }, ctx) => {
    checkSessionId(sessionId);
    const lease = await deps.leases.get(sessionId, scopeOf(callerOf(ctx)), ctx.signal);
    if (!lease) throw sessionNotFound(sessionId);
    return { lease };
  });
