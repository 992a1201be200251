import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  AcquireLeaseRequest,
  AcquireLeaseResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { callerOf } from "../caller-of.ts";
import { checkId, checkRequestId } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkBootId } from "./harness-heartbeat.ts";

/** Makes the caller the driver of one session. */
export const acquireLease = (deps: Deps) =>
  unary<AcquireLeaseRequest, AcquireLeaseResponse>(async ({ sessionId, bootId, requestId = "" }, ctx) => {
    const violations = new Violations();
    checkBootId(violations, bootId);
    if (sessionId !== "") checkId(violations, "session_id", sessionId);
    checkRequestId(violations, requestId);
    violations.throwIfAny();
    const owner = callerOf(ctx).subject;
    const lease = await deps.leases.acquire(
      { owner, bootId },
      sessionId || null,
      requestId || null,
      ctx.signal,
    );
    if (!lease) return { lease: undefined };
    ctx.note({ session_id: lease.sessionId, epoch: lease.epoch });
    if (ctx.signal.aborted) {
      // The caller has gone and will never know that it holds this one.
      await deps.leases.release(owner, lease.sessionId, lease.epoch, null);
      deps.announce(lease.sessionId, true);
    } else {
      deps.announce(lease.sessionId, false);
    }
    return { lease };
  });
