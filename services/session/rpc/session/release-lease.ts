import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  ReleaseLeaseRequest,
  ReleaseLeaseResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { sessionNotFound } from "../../domain/errors.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Gives a session back. */
export const releaseLease = (deps: Deps) =>
  unary<ReleaseLeaseRequest, ReleaseLeaseResponse>(
    async ({ sessionId, epoch, settledPosition = null }, ctx) => {
      const violations = new Violations();
      checkId(violations, "session_id", sessionId);
      violations.integer("epoch", epoch, { min: 1n });
      if (settledPosition !== null) violations.integer("settled_position", settledPosition, { min: 1n });
      violations.throwIfAny();
      const owner = callerOf(ctx).subject;
      const released = await deps.leases.release(owner, sessionId, epoch, settledPosition, ctx.signal);
      if (!released) throw sessionNotFound(sessionId);
      if (released.isRunnable) deps.announce(sessionId, true);
      return {};
    },
  );
