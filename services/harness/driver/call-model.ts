import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import { contextOf } from "../domain/context/context-of.ts";
import { keepsPromise } from "../domain/context/keeps-promise.ts";
import { FAILURES } from "../domain/failures.ts";
import type { Projection } from "../domain/project-request.ts";
import { type AnswerListener, ModelError, type OpenedRequest } from "../ports/model.ts";
import { answerEvents, previewType } from "./answer-events.ts";
import { askModel, spanEnd } from "./ask-model.ts";
import { beginRequest, openMeanwhile, recordStrategy } from "./begin-request.ts";
import { buildRequest } from "./build-request.ts";
import type { DriveContext } from "./drive-context.ts";
import { failTurn } from "./fail-turn.ts";
import { judgeCalls } from "./judge-calls.ts";
import { LeaseLost } from "./lease-lost.ts";
import { noteModelFailure } from "./note-model-failure.ts";
import { type PreparedRequest, prepareRequest } from "./prepare-request.ts";

/** Builds the next request, makes its span durable, and asks the model. */
export async function callModel(ctx: DriveContext, attempt: number): Promise<void> {
  const { log } = ctx;
  let request: Projection | undefined;
  try {
    request = await buildRequest(ctx);
  } catch (error) {
    if (error instanceof LeaseLost) throw error;
    ctx.logger.error({ err: error }, "no request can be built from the log");
    return failTurn(ctx, FAILURES.requestNotBuilt);
  }
  // Stopped while contents were read.
  if (!request) return;
  if (!keepsPromise(log.state, request.digests)) {
    ctx.logger.error(
      { reason: FAILURES.prefixBroken.reason },
      "a request does not begin as the one before it promised, and nothing in the log says why",
    );
    if (contextOf(log.state)?.strategy.promise === "enforced") {
      // Recorded as a change, or no later turn could do better.
      await log.append([recordStrategy(log.state)], ctx.traceparent);
      return failTurn(ctx, FAILURES.prefixBroken);
    }
  }
  const prepared = prepareRequest(log.state, request, attempt);
  const begun = beginRequest(ctx, prepared.span).then(() => true);
  const { opened } = await openMeanwhile(ctx, prepared.body, begun);
  await sendRequest(ctx, prepared, opened);
}

/**
 * Asks the model once, with a request whose span is durable, and writes down what came of it: the whole answer in one
 * append, or a failure and, where trying again may help, the wait before the next attempt (B018 to B020). Nothing of an
 * answer that was cut counts (B016).
 */
export async function sendRequest(
  ctx: DriveContext,
  prepared: PreparedRequest,
  opened?: OpenedRequest,
): Promise<void> {
  const { span, body, attempt, catalog } = prepared;
  const ids = new Map<number, string>();
  const shown = new Set<string>();
  const asked = await askModel(ctx, body, {
    spanId: span.id,
    attempt,
    listener: previewListener(ctx, ids, shown),
    opened,
    onFailure: () => {
      for (const id of shown) ctx.previews.discard(id);
    },
  });
  if (!asked) return;
  const { answer, durationMs } = asked;
  ctx.cacheShare.note(answer.usage);

  const judgements = await judgeCalls(ctx, answer.blocks, catalog);
  const idOf = (index: number): string => ids.get(index) ?? newId("sevt");
  const blocks = answerEvents(answer.blocks, span.id, catalog, judgements, idOf);
  for (const { id, body: block } of blocks) {
    if (block.$case === "agentToolUse" || block.$case === "agentMcpToolUse") ctx.ownCalls.add(id);
  }
  try {
    await ctx.log.append([...blocks, spanEnd(span.id, answer, durationMs())], ctx.traceparent);
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
