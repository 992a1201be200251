import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import type { Event, StopReason, StopReason_Type } from "../../gen/ganglion/types/v1/event.ts";
import type { Status } from "./append.ts";

// The number behind the name; the domain runs none of the generated code.
const BUDGET_REACHED: StopReason_Type = 4;

/** What an event changes in its session's row; absent = unchanged. */
export interface Effect {
  status?: Status;
  /** Whether the log leaves a brain something to do. */
  runnable?: boolean;
  usage?: ModelUsage;
  activeMs?: bigint;
  stopReason?: StopReason;
  /** List price so far, in millionths of a cent. */
  listCost?: bigint;
  /** Whether the session waits because its budget is used up. */
  isBudgetPaused?: boolean;
}

/** Input of a client: a brain has to look at it, be it only to find that it changes nothing. */
export const INPUT_EFFECT: Effect = { runnable: true };

/** Types of the input of a client that makes a session runnable. */
export const INPUT_TYPES: readonly string[] = [
  "user.message",
  "user.interrupt",
  "user.tool_confirmation",
  "user.custom_tool_result",
  "user.tool_result",
];

/** All types for which effectOf may say something. */
export const EFFECT_TYPES: readonly string[] = [
  ...INPUT_TYPES,
  "session.status_running",
  "session.status_idle",
  "session.status_rescheduled",
  "session.status_terminated",
  "session.usage",
  "session.updated",
];

/**
 * effectOf says how an event moves its session's row; null = not at all. The row is a fold of the log that is
 * stored beside it, so this function and the statements that apply it are the only place where status changes.
 */
export function effectOf(body: Event["body"]): Effect | null {
  switch (body?.$case) {
    case "userMessage":
    case "userInterrupt":
    case "userToolConfirmation":
    case "userCustomToolResult":
    case "userToolResult":
      return INPUT_EFFECT;
    case "sessionStatusRunning":
      return { status: "running", runnable: true, isBudgetPaused: false };
    case "sessionStatusIdle": {
      const { stopReason } = body.value;
      const isBudgetPaused = stopReason?.type === BUDGET_REACHED;
      return { status: "idle", runnable: false, isBudgetPaused, ...(stopReason ? { stopReason } : {}) };
    }
    case "sessionStatusRescheduled":
      return { status: "rescheduling" };
    case "sessionStatusTerminated":
      return { status: "terminated", runnable: false };
    case "sessionUsage": {
      const { usage, activeMs, listCostMicrocents: listCost } = body.value;
      return { ...(usage ? { usage } : {}), activeMs, ...(listCost === undefined ? {} : { listCost }) };
    }
    case "sessionUpdated":
      // Whoever waited for the budget goes on.
      return body.value.budget || body.value.isBudgetRemoved
        ? { runnable: true, isBudgetPaused: false }
        : null;
    default:
      return null;
  }
}
