import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  GetCheckpointRequest,
  GetCheckpointResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import { checkFormat, checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Returns the fold that is kept for a format. */
export const getCheckpoint = (deps: Pick<Deps, "checkpoints">) =>
  unary<GetCheckpointRequest, GetCheckpointResponse>(async ({ sessionId, format }, ctx) => {
    const violations = new Violations();
    checkId(violations, "session_id", sessionId);
    checkFormat(violations, format);
    violations.throwIfAny();
    const kept = await deps.checkpoints.get(sessionId, scopeOf(callerOf(ctx)), format, ctx.signal);
    if (!kept) throw sessionNotFound(sessionId);
    return kept === "none" ? { position: 0n, data: Buffer.alloc(0) } : kept;
  });
