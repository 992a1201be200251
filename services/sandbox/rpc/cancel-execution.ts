import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type {
  CancelExecutionRequest,
  CancelExecutionResponse,
} from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { checkEpoch, checkKey, checkSessionId } from "./check-fields.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** cancelExecution kills a run and everything that it started. */
export async function cancelExecution(
  request: CancelExecutionRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<CancelExecutionResponse> {
  const { sessionId, key, epoch } = request;
  const violations = new Violations();
  checkSessionId(violations, sessionId);
  checkKey(violations, key);
  checkEpoch(violations, epoch);
  violations.throwIfAny();
  ctx.note({ call: key });
  await deps.leases.admit({ sessionId, epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  await deps.executions.cancel({ sessionId, key });
  return {};
}
