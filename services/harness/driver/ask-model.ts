import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { PART } from "../domain/proto-values.ts";
import type { NewEvent } from "../ports/event-log.ts";
import {
  type Answer,
  type AnswerListener,
  ModelError,
  type ModelErrorInit,
  type OpenedRequest,
} from "../ports/model.ts";
import type { DriveContext } from "./drive-context.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { newEvent } from "./new-events.ts";
import { noteModelFailure } from "./note-model-failure.ts";
import { stepSignal } from "./step-signal.ts";

/** What one request is, beside its body. */
export interface Asking {
  /** Its span, which the log has. */
  spanId: string;
  attempt: number;
  listener: AnswerListener;
  /** The request itself, where it is at the door already but for its end. */
  opened?: OpenedRequest | undefined;
  /** Told when no answer came. */
  onFailure?: () => void;
}

/** An answer and the time it took. */
export interface Asked {
  answer: Answer;
  durationMs: () => bigint;
}

/**
 * Asks the model once, until an interrupt. Undefined = it failed, and the log says so, with the wait before the next
 * attempt where trying again may help (B018 to B020).
 */
export async function askModel(ctx: DriveContext, body: Buffer, asking: Asking): Promise<Asked | undefined> {
  const { signal, dispose } = stepSignal(ctx);
  const startedAt = performance.now();
  const durationMs = (): bigint => BigInt(Math.round(performance.now() - startedAt));
  try {
    const token = await sessionToken(ctx, signal);
    const { listener, opened } = asking;
    const answer = await ctx.ports.model.ask({
      body,
      token,
      listener,
      signal,
      traceparent: ctx.traceparent,
      opened,
    });
    return { answer, durationMs };
  } catch (error) {
    asking.onFailure?.();
    if (ctx.signal.aborted) throw new LeaseLost("stopped in a model request", { cause: error });
    await noteModelFailure(ctx, asking.spanId, asking.attempt, asModelError(error), durationMs());
    return undefined;
  } finally {
    asking.opened?.cancel();
    dispose();
  }
}

/** The end of a request that was answered. */
export function spanEnd(spanId: string, answer: Answer, durationMs: bigint): NewEvent {
  return newEvent({
    $case: "spanModelRequestEnd",
    value: {
      modelRequestStartId: spanId,
      isError: false,
      usage: answer.usage,
      providerStopReason: answer.stopReason,
      providerMessageId: answer.messageId,
      upstream: answer.upstream,
      firstTokenMs: answer.firstTokenMs === undefined ? undefined : BigInt(answer.firstTokenMs),
      durationMs,
      errorReason: "",
      stopDetailsJson: Buffer.from(answer.stopDetailsJson),
    },
  });
}

async function sessionToken(ctx: DriveContext, signal: AbortSignal): Promise<string> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(new ModelError(INTERRUPTED));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([ctx.token.get(), stopped.promise]);
  } catch (error) {
    if (saysLeaseIsLost(error)) throw new LeaseLost("no token for this epoch", { cause: error });
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

const INTERRUPTED: ModelErrorInit = {
  reason: "INTERRUPTED",
  part: PART.BRAIN,
  errorType: "unknown_error",
  message: "The request was stopped.",
  isRetryable: false,
};

function asModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof LeaseLost) throw error;
  // The token could not be had: the proxy, or what it needs.
  const reason = GanglionError.is(error) ? error.reason : "INTERNAL";
  return new ModelError({
    reason,
    part: reason.startsWith("VAULT_") ? PART.VAULT : reason === "LOG_UNAVAILABLE" ? PART.LOG : PART.PROXY,
    errorType: "model_request_failed_error",
    message: `The credential proxy gave no session token (${reason}).`,
    isRetryable: GanglionError.is(error) && ["UNAVAILABLE", "DEADLINE_EXCEEDED"].includes(error.code),
    cause: error,
  });
}
