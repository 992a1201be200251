import type { CompactionPlan } from "../domain/context/plan-compaction.ts";
import { projectCompaction, summaryWithoutModel } from "../domain/context/project-compaction.ts";
import { PURPOSE } from "../domain/proto-values.ts";
import { sha256 } from "../domain/sha256.ts";
import { textBlock } from "../domain/text-block.ts";
import type { Answer } from "../ports/model.ts";
import { askModel, spanEnd } from "./ask-model.ts";
import { beginRequest } from "./begin-request.ts";
import type { DriveContext } from "./drive-context.ts";
import { newEvent, spanStart } from "./new-events.ts";

/**
 * Has the model summarise older turns and appends the summary together with the end of its request, so that there is all
 * of it or nothing. What it stands for stays in the log (law L9). A crash or an interrupt in it leaves a span that is
 * ended, and it is done again. A model that gives no summary is replaced by a plain list of what was asked.
 */
export async function compact(ctx: DriveContext, plan: CompactionPlan, attempt: number): Promise<void> {
  const { state } = ctx.log;
  const body = projectCompaction(state, plan);
  const span = spanStart(state, {
    purpose: PURPOSE.COMPACTION,
    consumedPosition: 0n,
    attempt,
    requestSha256: sha256(body),
  });
  await beginRequest(ctx, span);
  const asked = await askModel(ctx, body, { spanId: span.id, attempt, listener: SILENT });
  if (!asked) return;
  ctx.cacheShare.note(asked.answer.usage);
  const text = summaryOf(asked.answer);
  if (text === "") ctx.logger.warn({ stop_reason: asked.answer.stopReason }, "the model gave no summary");
  const compacted = newEvent({
    $case: "agentThreadContextCompacted",
    value: {
      throughPosition: plan.throughPosition,
      // The turns that it stands for are the same as before the request.
      summary: textBlock(text || summaryWithoutModel(state, plan)),
      modelRequestStartId: span.id,
    },
  });
  await ctx.log.append([compacted, spanEnd(span.id, asked.answer, asked.durationMs())], ctx.traceparent);
}

const SILENT = { onBlockStart: () => {}, onText: () => {} };
// The log takes 1 MiB in one event, and a summary of that size would be none.
const MAX_CHARS = 100_000;

/** The text of an answer; calls in it are ignored. One that was cut at the token limit is better than none. */
function summaryOf({ blocks, stopReason }: Answer): string {
  if (stopReason === "refusal") return "";
  const texts = blocks
    .filter((block) => block.type === "text")
    .map((block) => (JSON.parse(block.json) as { text?: unknown }).text);
  return texts
    .filter((text) => typeof text === "string")
    .join("\n")
    .trim()
    .slice(0, MAX_CHARS);
}
