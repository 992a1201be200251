import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { canCompact } from "../domain/context/plan-compaction.ts";
import { FAILURES } from "../domain/failures.ts";
import { areAttemptsUsedUp, countFailure, waitStep } from "../domain/mesh-failures.ts";
import { RETRY, STOP } from "../domain/proto-values.ts";
import { retryDelay } from "../domain/retry-delay.ts";
import type { ModelError } from "../ports/model.ts";
import type { DriveContext } from "./drive-context.ts";
import { consumeInput } from "./fail-turn.ts";
import { idleAtHead } from "./idle-at-head.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { failedSpanEnd, newEvent, sessionError } from "./new-events.ts";
import { pause } from "./pause.ts";
import { stepSignal } from "./step-signal.ts";

/**
 * Writes down that a model request failed. Where trying again may help it also says when, and waits until then with the
 * lease kept; otherwise the turn is over (B018 to B020, B023).
 */
export async function noteModelFailure(
  ctx: DriveContext,
  spanId: string,
  attempt: number,
  { facts }: ModelError,
  durationMs: bigint,
): Promise<void> {
  if (saysLeaseIsLost(new GanglionError({ code: "UNAUTHENTICATED", reason: facts.reason, message: "" }))) {
    throw new LeaseLost(`the proxy refused the token (${facts.reason})`);
  }
  const end = failedSpanEnd(spanId, facts.reason, {
    usage: facts.usage,
    upstream: facts.upstream ?? "",
    firstTokenMs: facts.firstTokenMs === undefined ? undefined : BigInt(facts.firstTokenMs),
    durationMs,
  });
  if (facts.reason === "INTERRUPTED") return ctx.log.append([end], ctx.traceparent);
  ctx.logger.warn({ reason: facts.reason, attempt }, "model request failed");
  if (facts.reason === "TOKEN_INVALID") ctx.token.forget();
  const mayHelp = facts.isRetryable || facts.reason === "TOKEN_INVALID";
  const { state } = ctx.log;
  // Not the end of the turn: what stands in the window can be made less.
  const isTooLong = facts.reason === FAILURES.contextExceeded.reason;
  if (isTooLong && canCompact(state)) return ctx.log.append([end], ctx.traceparent);
  const failed = countFailure(state, attempt, facts.reason);
  if (!mayHelp || areAttemptsUsedUp(failed)) {
    // What was queued behind the turn goes with it; a request for a summary has consumed nothing, and would be made
    // again and again.
    const isLeft = state.openSpan?.isCompaction || state.queued.length > 0;
    const consumed = isLeft ? consumeInput(ctx, facts.reason) : [];
    await ctx.log.append([end, ...consumed, sessionError(facts, RETRY.EXHAUSTED)], ctx.traceparent);
    // What was appended meanwhile is seen by the next try; an interrupt ends here as well.
    for (let i = 0; i < 5 && !(await idleAtHead(ctx, STOP.RETRIES_EXHAUSTED)); i++);
    return;
  }
  const delayMs = retryDelay(waitStep(facts.reason, failed), facts.retryAfterMs, ctx.random());
  await ctx.log.append(
    [
      end,
      newEvent({
        $case: "ganglionModelRetryScheduled",
        value: {
          modelRequestStartId: spanId,
          reason: facts.reason,
          retryTime: timestampIn(delayMs),
          nextAttempt: attempt + 1,
        },
      }),
      sessionError(facts, RETRY.RETRYING),
      newEvent({ $case: "sessionStatusRescheduled", value: {} }),
    ],
    ctx.traceparent,
  );
  const { signal, dispose } = stepSignal(ctx);
  await pause(delayMs, signal);
  dispose();
}

function timestampIn(ms: number): { seconds: bigint; nanos: number } {
  const at = Date.now() + ms;
  return { seconds: BigInt(Math.floor(at / 1000)), nanos: Math.floor(at % 1000) * 1_000_000 };
}
