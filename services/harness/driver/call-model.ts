import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import { FAILURES } from "../domain/failures.ts";
import { CONTEXT_STRATEGY, projectRequest } from "../domain/project-request.ts";
import { PART, PURPOSE } from "../domain/proto-values.ts";
import { sha256 } from "../domain/sha256.ts";
import { toolCatalog } from "../domain/tool-catalog.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { type Answer, type AnswerListener, ModelError, type ModelErrorInit } from "../ports/model.ts";
import { answerEvents, previewType } from "./answer-events.ts";
import type { DriveContext } from "./drive-context.ts";
import { failTurn } from "./fail-turn.ts";
import { interruptSignal } from "./interrupt-signal.ts";
import { judgeCalls } from "./judge-calls.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { newEvent, statusRunning } from "./new-events.ts";
import { noteModelFailure } from "./note-model-failure.ts";

/**
 * Asks the model once and writes down what came of it: the whole answer in one append, or a failure and, where trying
 * again may help, the wait before the next attempt (B018 to B020). Nothing of an answer that was cut counts (B016).
 */
export async function callModel(ctx: DriveContext, attempt: number): Promise<void> {
  const { log } = ctx;
  let body: Buffer;
  try {
    body = projectRequest(log.state);
  } catch (error) {
    ctx.logger.error({ err: error }, "no request can be built from the log");
    return failTurn(ctx, FAILURES.requestNotBuilt, { consumesInput: true });
  }
  const catalog = toolCatalog(log.state);
  const span = spanStart(ctx, body, attempt);
  await log.append(log.state.status === "running" ? [span] : [statusRunning(), span], ctx.traceparent);

  const ids = new Map<number, string>();
  const shown = new Set<string>();
  const interrupt = interruptSignal(log);
  const startedAt = performance.now();
  const durationMs = (): bigint => BigInt(Math.round(performance.now() - startedAt));
  const signal = AbortSignal.any([interrupt.signal, ctx.stop, ctx.signal]);
  let answer: Answer;
  try {
    answer = await ctx.ports.model.ask({
      body,
      token: await sessionToken(ctx, signal),
      listener: previewListener(ctx, ids, shown),
      signal,
      traceparent: ctx.traceparent,
    });
  } catch (error) {
    for (const id of shown) ctx.previews.discard(id);
    if (ctx.signal.aborted) throw new LeaseLost("stopped in a model request", { cause: error });
    return await noteModelFailure(ctx, span.id, attempt, asModelError(error), durationMs());
  } finally {
    interrupt.dispose();
  }

  const judgements = await judgeCalls(ctx, answer.blocks, catalog);
  const idOf = (index: number): string => ids.get(index) ?? newId("sevt");
  const blocks = answerEvents(answer.blocks, span.id, catalog, judgements, idOf);
  for (const { id, body: block } of blocks) {
    if (block.$case === "agentToolUse" || block.$case === "agentMcpToolUse") ctx.ownCalls.add(id);
  }
  try {
    await log.append([...blocks, spanEnd(span.id, answer, durationMs())], ctx.traceparent);
  } catch (error) {
    const isRefused = GanglionError.is(error) && REFUSALS.has(error.code);
    if (!isRefused) throw error;
    // Asked again it would answer as much again, and be paid for again.
    ctx.logger.error({ err: error }, "the log does not take the answer");
    const failure = new ModelError({ ...FAILURES.answerNotStored, reason: error.reason, isRetryable: false });
    await noteModelFailure(ctx, span.id, attempt, failure, durationMs());
  }
}

// The log looked at what it was given and will not take it, however often it is tried.
const REFUSALS = new Set(["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"]);

function spanStart(ctx: DriveContext, body: Buffer, attempt: number): NewEvent {
  return newEvent({
    $case: "spanModelRequestStart",
    value: {
      consumedPosition: ctx.log.state.position,
      model: ctx.log.state.agent?.model.id ?? "",
      contextStrategy: CONTEXT_STRATEGY,
      requestSha256: sha256(body),
      attempt,
      purpose: PURPOSE.TURN,
      stablePrefixBytes: 0n,
      stablePrefixSha256: Buffer.alloc(0),
    },
  });
}

function spanEnd(spanId: string, answer: Answer, durationMs: bigint): NewEvent {
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

function previewListener(ctx: DriveContext, ids: Map<number, string>, shown: Set<string>): AnswerListener {
  return {
    onBlockStart(index, type) {
      const id = newId("sevt");
      ids.set(index, id);
      const eventType = previewType(type);
      if (eventType === undefined) return;
      shown.add(id);
      ctx.previews.start(id, eventType);
    },
    onText(index, text) {
      const id = ids.get(index);
      if (id !== undefined && shown.has(id)) ctx.previews.text(id, text);
    },
  };
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
