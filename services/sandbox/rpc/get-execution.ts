import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type {
  GetExecutionRequest,
  GetExecutionResponse,
} from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { checkEpoch, checkKey, checkSessionId } from "./check-fields.ts";
import { mapExecution, mapRunning } from "./map-execution.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** getExecution says what the journal knows of a key, and runs nothing. */
export async function getExecution(
  request: GetExecutionRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<GetExecutionResponse> {
  const { sessionId, key, epoch, wait } = request;
  const violations = new Violations();
  checkSessionId(violations, sessionId);
  checkKey(violations, key);
  checkEpoch(violations, epoch);
  violations.throwIfAny();
  await deps.leases.admit({ sessionId, epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  const known = await deps.executions.get({ sessionId, key, wait });
  if ("isRunning" in known) return { execution: mapRunning(known), isRunning: true };
  return { execution: mapExecution(known), isRunning: false };
}
