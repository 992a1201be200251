import type {
  ModelRequestPurpose,
  Permission,
  SessionError_Part,
  SessionError_RetryStatus,
  StopReason_Type,
  ToolOutcome,
} from "../../gen/ganglion/types/v1/event.ts";

// The domain takes types from the generated code but runs none of it; these are the numbers behind the names,
// checked against the generated ones by test/unit/harness/proto-values.test.ts.

/** What was decided about a call before it ran. */
export const PERMISSION = { ALLOW: 1, ASK: 2, DENY: 3 } as const satisfies Record<string, Permission>;

/** What is known about a call's effect. */
export const OUTCOME = { COMPLETED: 1, NOT_RUN: 2, UNKNOWN: 3, CANCELLED: 4 } as const satisfies Record<
  string,
  ToolOutcome
>;

/** Why a session went idle. */
export const STOP = {
  END_TURN: 1,
  REQUIRES_ACTION: 2,
  RETRIES_EXHAUSTED: 3,
  BUDGET_REACHED: 4,
  REFUSAL: 5,
} as const satisfies Record<string, StopReason_Type>;

/** The part that failed. */
export const PART = {
  BRAIN: 1,
  HAND: 2,
  LOG: 3,
  PROXY: 4,
  VAULT: 5,
  UPSTREAM: 6,
  MODEL: 7,
} as const satisfies Record<string, SessionError_Part>;

/** What happens after an error. */
export const RETRY = { RETRYING: 1, EXHAUSTED: 2, TERMINAL: 3 } as const satisfies Record<
  string,
  SessionError_RetryStatus
>;

/** What becomes of an answer. */
export const PURPOSE = { TURN: 1, COMPACTION: 2 } as const satisfies Record<string, ModelRequestPurpose>;

/** user.tool_confirmation says yes. */
export const CONFIRM_ALLOW = 1;
