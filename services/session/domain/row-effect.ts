import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import type { Event, StopReason } from "../../gen/ganglion/types/v1/event.ts";
import type { Status } from "./append.ts";

/** What an event changes in its session's row; absent = unchanged. */
export interface Effect {
  status?: Status;
  /** Whether the log leaves a brain something to do. */
  runnable?: boolean;
  usage?: ModelUsage;
  activeMs?: bigint;
  stopReason?: StopReason;
}

/**
 * effectOf says how an event moves its session's row; null = not at all. The row is a fold of the log that is
 * stored beside it, so this function and the statements that apply it are the only place where status changes.
 */
export function effectOf(body: Event["body"]): Effect | null {
  switch (body?.$case) {
    // Input of a client: a brain has to look at it, be it only to find that it changes nothing.
    case "userMessage":
    case "userInterrupt":
    case "userToolConfirmation":
    case "userCustomToolResult":
    case "userToolResult":
      return { runnable: true };
    case "sessionStatusRunning":
      return { status: "running", runnable: true };
    case "sessionStatusIdle":
      return { status: "idle", runnable: false, stopReason: body.value.stopReason };
    case "sessionStatusRescheduled":
      return { status: "rescheduling" };
    case "sessionStatusTerminated":
      return { status: "terminated", runnable: false };
    case "sessionUsage":
      return { usage: body.value.usage, activeMs: body.value.activeMs };
    default:
      return null;
  }
}
