import type { Failure } from "../domain/failures.ts";
import { PURPOSE, RETRY, STOP } from "../domain/proto-values.ts";
import type { Call } from "../domain/session-state.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { DriveContext } from "./drive-context.ts";
import { idleAtHead } from "./idle-at-head.ts";
import { callResult, failedSpanEnd, sessionError, spanStart } from "./new-events.ts";
import { unknown } from "./run-in-hand.ts";

/**
 * Ends a turn that cannot go on: closes what is open, says what failed, goes idle. Input that could not be answered
 * however often it were tried, or that was queued behind the turn, is consumed by a request that is never sent: it stays
 * in the conversation, and the next message goes on from there.
 */
export async function failTurn(
  ctx: DriveContext,
  failure: Failure,
  calls: readonly Call[] = [],
): Promise<void> {
  ctx.logger.warn({ reason: failure.reason }, "the turn failed");
  const results = calls.map((call) => callResult(call, unknown("The turn was ended")));
  await ctx.log.append(
    [
      ...(ctx.log.state.queued.length > 0 ? consumeInput(ctx, failure.reason) : []),
      ...results,
      sessionError(failure, RETRY.EXHAUSTED),
    ],
    ctx.traceparent,
  );
  await idleAtHead(ctx, STOP.RETRIES_EXHAUSTED);
}

/** A request that is never sent: it takes what is queued into the conversation, where nobody answers it by itself. */
export function consumeInput(
  ctx: DriveContext,
  reason: string,
  upTo: bigint = ctx.log.state.position,
): NewEvent[] {
  const start = spanStart(ctx.log.state, { purpose: PURPOSE.TURN, consumedPosition: upTo, attempt: 1 });
  return [start, failedSpanEnd(start.id, reason)];
}
