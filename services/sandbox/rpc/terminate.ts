import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type { TerminateRequest, TerminateResponse } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { checkEpoch, checkHandId, checkSessionId } from "./check-fields.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

/** terminate kills a hand with everything in it. */
export async function terminate(
  request: TerminateRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<TerminateResponse> {
  const { handId, sessionId, epoch } = request;
  const isOperator = ctx.principal.role === Role.ROLE_OPERATOR;
  const violations = new Violations();
  checkHandId(violations, handId);
  checkSessionId(violations, sessionId, !isOperator);
  if (!isOperator) checkEpoch(violations, epoch);
  violations.throwIfAny();
  ctx.note({ hand_id: handId });
  if (!isOperator) {
    await deps.leases.admit({ sessionId, epoch, caller: ctx.principal.spiffeId }, ctx.signal);
  }
  await deps.hands.terminate(handId, sessionId === "" ? undefined : sessionId);
  return {};
}
