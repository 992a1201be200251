import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** NOT_FOUND for a session that is absent or another workspace's: both look the same. [A140] */
export function sessionNotFound(sessionId: string): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "SESSION_NOT_FOUND",
    message: "there is no such session",
    metadata: { session_id: sessionId },
  });
}

/** FAILED_PRECONDITION for an append under an epoch that is over: stop driving. */
export function staleEpoch(epoch: bigint): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "STALE_EPOCH",
    message: "the epoch is over or the lease is not the caller's; stop driving the session",
    metadata: { epoch: epoch.toString() },
  });
}

/** FAILED_PRECONDITION for a change to a session that is over. */
export function sessionEnded(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "SESSION_ENDED",
    message: "the session is over and can only be read",
  });
}

/** FAILED_PRECONDITION for new input to a session that is paused at its budget. */
export function budgetReached(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "BUDGET_REACHED",
    message: "the session is paused at its budget; raise or remove the budget first",
  });
}

/** FAILED_PRECONDITION for a budget where the operator's price list has no price. */
export function modelNotBudgetable(model: string): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "MODEL_NOT_BUDGETABLE",
    message: "the operator's price list has no price for the model",
    metadata: { model },
  });
}

/** FAILED_PRECONDITION for a budget for a session that has none. */
export function budgetCreateOnly(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "BUDGET_CREATE_ONLY",
    message: "the session has no budget and cannot be given one",
  });
}

/** FAILED_PRECONDITION for a budget that is used up already. */
export function budgetNotRaised(listCost: bigint): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "BUDGET_NOT_RAISED",
    message: "the budget must be more than what was used",
    metadata: { list_cost_microcents: listCost.toString() },
  });
}

/** FAILED_PRECONDITION for what a running session does not allow. */
export function sessionRunning(): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "SESSION_RUNNING",
    message: "the session is running; interrupt it first",
  });
}

/** ABORTED for an append that expected another head. [B041] */
export function positionConflict(head: bigint): GanglionError {
  return new GanglionError({
    code: "ABORTED",
    reason: "POSITION_CONFLICT",
    message: "the log has moved on; read from your position and decide again",
    metadata: { head_position: head.toString() },
  });
}

/** ALREADY_EXISTS for an id that was used with another body. */
export function idReused(id: string): GanglionError {
  return new GanglionError({
    code: "ALREADY_EXISTS",
    reason: "ID_REUSED",
    message: "the id was used before with another body",
    metadata: { id },
  });
}

/** RESOURCE_EXHAUSTED for an event or batch beyond the limit. [B128] */
export function tooLarge(what: string, limitBytes: number): GanglionError {
  return new GanglionError({
    code: "RESOURCE_EXHAUSTED",
    reason: "TOO_LARGE",
    message: `${what} is larger than ${limitBytes} bytes`,
    metadata: { limit_bytes: String(limitBytes) },
  });
}

/** OUT_OF_RANGE for a caller that claims to be ahead of the log. */
export function positionAheadOfLog(head: bigint, field = "after_position"): GanglionError {
  return new GanglionError({
    code: "OUT_OF_RANGE",
    reason: "POSITION_AHEAD_OF_LOG",
    message: `${field} lies behind the newest event`,
    metadata: { head_position: head.toString() },
  });
}

/** FAILED_PRECONDITION for a fork that would be over from the start. */
export function forkBehindEnd(last: bigint): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "SESSION_ENDED",
    message: "the source ends at this position; a fork can be made of what is before it",
    metadata: { last_position: last.toString() },
  });
}

/** INVALID_ARGUMENT for one field. */
export function invalidField(field: string, description: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "INVALID_FIELD",
    message: `${field} ${description}`,
    metadata: { field },
    violations: [{ field, description }],
  });
}

/** NOT_FOUND for a workspace that is absent or not the caller's: both look the same. */
export function workspaceNotFound(workspaceId: string): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "WORKSPACE_NOT_FOUND",
    message: "there is no such workspace",
    metadata: { workspace_id: workspaceId },
  });
}

/** NOT_FOUND for an event id that the log does not have. */
export function eventNotFound(eventId: string): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "EVENT_NOT_FOUND",
    message: "the log has no event with this id",
    metadata: { event_id: eventId },
  });
}

/** NOT_FOUND for a registry entry that is absent or another workspace's. */
export function notFound(kind: "agent" | "environment" | "api_key", id: string): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: `${kind.toUpperCase()}_NOT_FOUND`,
    message: `there is no such ${kind.replace("_", " ")}`,
    metadata: { [`${kind}_id`]: id },
  });
}

/** FAILED_PRECONDITION for a session that another live harness drives. */
export function leaseHeld(owner: string, epoch: bigint): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "LEASE_HELD",
    message: "another harness holds the session's lease",
    metadata: { owner, epoch: epoch.toString() },
  });
}

/** NOT_FOUND for content that the session does not have. */
export function payloadNotFound(payloadId: string): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "PAYLOAD_NOT_FOUND",
    message: "the session has no payload with this id",
    metadata: { payload_id: payloadId },
  });
}

/** INVALID_ARGUMENT for content that is not what is said of it. */
export function payloadMismatch(payloadId: string, how: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "PAYLOAD_MISMATCH",
    message: `the payload is not what is said of it: ${how}`,
    metadata: { payload_id: payloadId },
  });
}
