import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { acknowledgedKeys } from "../domain/acknowledged-keys.ts";
import { LIMITS } from "../domain/limits.ts";
import { OUTCOME } from "../domain/proto-values.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { notRun } from "../domain/settle-call.ts";
import { textBlock } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { CallRef, HandExecution } from "../ports/hands.ts";
import { answerOrStop } from "./answer-or-stop.ts";
import type { DriveContext } from "./drive-context.ts";
import { keepResult } from "./keep-result.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { lookUpExecution } from "./look-up-execution.ts";
import { callResult } from "./new-events.ts";
import { pause } from "./pause.ts";

// The host says that the call was not even begun; the same key may be tried again.
const NOTHING_RAN = new Set(["JOURNAL_UNAVAILABLE", "DRAINING", "LOG_UNAVAILABLE"]);
// The host says that it will never begin the call, as it said or would have said each time before. The same goes for a
// hand that it does not have: it looks for the key in its journal first.
const REFUSED = new Set(["INVALID_FIELD", "ROLE_NOT_ALLOWED", "KEY_REUSED"]);

/**
 * Runs one built-in call in the session's hand, under the call's key, and gives its result. A call that another brain
 * may have begun is asked for first and never begun blindly (law L4, B152). Undefined = stopped by the signal.
 */
export async function runInHand(
  ctx: DriveContext,
  call: Call,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  const ref = refOf(ctx, call, signal);
  if (!ctx.ownCalls.has(call.id)) {
    const known = await lookUpExecution(ctx, ref, { wait: true });
    if (signal.aborted) return undefined;
    if (known.kind === "known") return finish(ctx, call, known.value, signal);
    if (known.kind === "unknown") return closeUnknown(ctx, call);
  }
  let hand: Awaited<ReturnType<typeof ctx.hand.ensure>>;
  try {
    hand = await ctx.hand.ensure(signal);
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    if (signal.aborted) return undefined;
    return callResult(call, notRun(`There is no hand to run this in (${reasonOf(error)}).`));
  }

  let mayHaveBegun = false;
  const until = performance.now() + ctx.patience.callMs;
  for (;;) {
    // Stopped while it waited: whoever closes the call says that it was not run, or has cancelled it.
    if (signal.aborted) return undefined;
    ctx.attempted.add(call.id);
    try {
      const running = ctx.ports.hands.execute({
        ...ref,
        // Goes on when the step is stopped: what it comes to may still be of interest.
        signal: ctx.signal,
        address: hand.sandboxAddr,
        handId: hand.id,
        name: call.name,
        inputJson: call.inputJson,
        timeoutMs: LIMITS.toolTimeoutMs,
        acknowledgedKeys: acknowledgedKeys(ctx.log.state, "built-in"),
      });
      const execution = await answerOrStop(ctx, call, running, signal, handResult);
      return execution && (await finish(ctx, call, execution, signal));
    } catch (error) {
      if (saysLeaseIsLost(error)) throw new LeaseLost("the sandbox refused the epoch", { cause: error });
      if (signal.aborted) return undefined;
      const reason = reasonOf(error);
      if (reason === "HAND_NOT_FOUND") {
        await ctx.hand.markLost(hand.id, "not found at its host");
        return mayHaveBegun
          ? closeByJournal(ctx, call, ref, { why: HAND_GONE, forMs: ctx.patience.callMs })
          : callResult(call, notRun(HAND_GONE));
      }
      if (REFUSED.has(reason) && !mayHaveBegun) {
        return callResult(call, notRun(`The sandbox refused this call (${reason}).`));
      }
      if (!NOTHING_RAN.has(reason)) mayHaveBegun = true;
      if (performance.now() > until) {
        if (mayHaveBegun) return closeUnknown(ctx, call);
        // The channel asks again by itself what was lost: an attempt before the last one may have come through.
        const why = `The sandbox cannot be used now (${reason}).`;
        const forMs = ctx.patience.retryMs * LIMITS.journalTries;
        return closeByJournal(ctx, call, ref, { why, forMs });
      }
      await pause(ctx.patience.retryMs, signal);
    }
  }
}

/** Names a call for a journal. */
export function refOf(ctx: DriveContext, call: Call, signal: AbortSignal): CallRef {
  const { sessionId, epoch } = ctx.log.lease;
  return { sessionId, epoch, key: call.id, signal, traceparent: ctx.traceparent };
}

/**
 * A journal's answer as the call's result; undefined = stopped by the signal. A dead hand is an error of the tool; the
 * next call gets a new hand.
 */
export async function finish(
  ctx: DriveContext,
  call: Call,
  execution: HandExecution,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  if (execution.isHandLost) await ctx.hand.markLost(execution.handId, "died");
  const { handId, durationMs } = execution;
  return keepResult(ctx, call, handResult(execution), { handId, durationMs }, signal);
}

/** A journal's answer in the words of a result. */
export function handResult(execution: HandExecution): CallResult {
  const text = execution.isHandLost
    ? [execution.output, "The hand is gone and its files with it; the next call gets a new one."]
    : [execution.output];
  return {
    content: [textBlock(text.filter((part) => part !== "").join("\n"))],
    isError: execution.isError || execution.isHandLost,
    // A journal that does not say what it knows knows nothing.
    outcome: execution.outcome === 0 ? OUTCOME.UNKNOWN : execution.outcome,
  };
}

const HAND_GONE =
  "The hand is gone and its files with it, so this was not run. Call again to get a new hand.";

/** Closes a call as the journals know it, as not run only when none of them does. Undefined = stopped by the signal. */
async function closeByJournal(
  ctx: DriveContext,
  call: Call,
  ref: CallRef,
  { why, forMs }: { why: string; forMs: number },
): Promise<NewEvent | undefined> {
  const known = await lookUpExecution(ctx, ref, { wait: false, forMs });
  if (ref.signal.aborted) return undefined;
  if (known.kind === "known") return finish(ctx, call, known.value, ref.signal);
  return known.kind === "never" ? callResult(call, notRun(why)) : closeUnknown(ctx, call);
}

async function closeUnknown(ctx: DriveContext, call: Call): Promise<NewEvent> {
  const { hand } = ctx.log.state;
  if (hand) await ctx.hand.markLost(hand.id, "its host cannot be reached");
  return callResult(call, unknown("The host of the hand cannot be reached"));
}

/** An error result that says honestly that the effect is not known (law L4). */
export function unknown(why: string): CallResult {
  return {
    content: [textBlock(`${why}, so it is not known whether this call took effect. It was not run again.`)],
    isError: true,
    outcome: OUTCOME.UNKNOWN,
  };
}

function reasonOf(error: unknown): string {
  return GanglionError.is(error) ? error.reason : "INTERNAL";
}
