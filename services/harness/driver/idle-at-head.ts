import type { StopDetails, StopReason_Type } from "../../gen/ganglion/types/v1/event.ts";
import { STOP } from "../domain/proto-values.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { DriveContext } from "./drive-context.ts";
import { idleEvents, statusRunning } from "./new-events.ts";

/** What goes with an idle. */
export interface IdleOptions {
  /** Events that belong before it. */
  before?: readonly NewEvent[];
  /** Input up to here is consumed by those. */
  consumedPosition?: bigint;
  eventIds?: readonly string[];
  stopDetails?: StopDetails;
}

/**
 * Goes idle if nobody appended anything meanwhile; false = somebody did, decide again. Input that is queued already
 * begins the next turn in the same append, so that no crash can leave it behind an idle that says there is nothing to do.
 */
export async function idleAtHead(
  ctx: DriveContext,
  stop: StopReason_Type,
  options: IdleOptions = {},
): Promise<boolean> {
  const { state } = ctx.log;
  const waits = stop === STOP.REQUIRES_ACTION || stop === STOP.BUDGET_REACHED;
  const { consumedPosition = 0n } = options;
  const startsAgain = !waits && state.queued.some((turn) => turn.position > consumedPosition);
  // Nothing may follow an idle until work begins again; input that the budget has no room for is that.
  const wakes = stop === STOP.BUDGET_REACHED && state.status === "idle";
  return ctx.log.appendAtHead(
    [
      ...(wakes ? [statusRunning()] : []),
      ...(options.before ?? []),
      ...idleEvents(state, stop, options.eventIds, options.stopDetails),
      ...(startsAgain ? [statusRunning()] : []),
    ],
    ctx.traceparent,
  );
}
