import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import type { ListHandsRequest, ListHandsResponse } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { checkSessionId } from "./check-fields.ts";
import { mapHand } from "./map-hand.ts";
import type { SandboxDeps } from "./sandbox-deps.ts";

const MAX_HANDS = 1_000;

/** listHands returns the hands of a session, or, to operators, of the host. */
export async function listHands(
  { sessionId }: ListHandsRequest,
  ctx: CallContext,
  deps: SandboxDeps,
): Promise<ListHandsResponse> {
  const isOperator = ctx.principal.role === Role.ROLE_OPERATOR;
  const violations = new Violations();
  checkSessionId(violations, sessionId, !isOperator);
  violations.throwIfAny();
  const hands = deps.hands.list(sessionId === "" ? undefined : sessionId);
  // The newest are the living ones.
  return { hands: hands.slice(-MAX_HANDS).map((hand) => mapHand(hand, deps.offer(), isOperator)) };
}
