import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  AcquireLeaseRequest,
  AcquireLeaseResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { callerOf } from "../caller-of.ts";
import { checkFormat, checkId, checkRequestId } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkBootId } from "./harness-heartbeat.ts";
import { LogStartReader } from "./log-start.ts";

/** Makes the caller the driver of one session. */
export const acquireLease = (deps: Deps) =>
  unary<AcquireLeaseRequest, AcquireLeaseResponse>(async (request, ctx) => {
    const { sessionId, bootId, requestId = "", checkpointFormat = "" } = request;
    const violations = new Violations();
    checkBootId(violations, bootId);
    if (sessionId !== "") checkId(violations, "session_id", sessionId);
    checkRequestId(violations, requestId);
    if (checkpointFormat !== "") checkFormat(violations, checkpointFormat, "checkpoint_format");
    violations.throwIfAny();
    const owner = callerOf(ctx).subject;
    const start = new LogStartReader(deps, checkpointFormat, ctx.signal);
    const given = await deps.leases.acquire(
      { owner, bootId },
      {
        sessionId: sessionId || null,
        requestId: requestId || null,
        onFound: (found) => start.begin(found),
      },
      ctx.signal,
    );
    if (!given) return { lease: undefined, logStart: undefined };
    const { lease, acquired } = given;
    const logStart = await start.of(lease, acquired);
    ctx.note({ session_id: lease.sessionId, epoch: lease.epoch });
    if (ctx.signal.aborted) {
      // The caller has gone and will never know that it holds this one.
      await deps.leases.release(owner, lease.sessionId, lease.epoch, null);
      deps.announce(lease.sessionId, true);
    } else {
      deps.announce(lease.sessionId, false, acquired);
    }
    return { lease, logStart };
  });
