import { keepsPromise } from "../domain/context/keeps-promise.ts";
import { decide } from "../domain/decide.ts";
import { foldAhead } from "../domain/fold-ahead.ts";
import { project } from "../domain/project-request.ts";
import type { SessionState } from "../domain/session-state.ts";
import { blockSize } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { openingOf, openMeanwhile } from "./begin-request.ts";
import { payloadsIn } from "./build-request.ts";
import { sendRequest } from "./call-model.ts";
import type { DriveContext } from "./drive-context.ts";
import { type PreparedRequest, prepareRequest } from "./prepare-request.ts";

// Far below what one append may hold: more than one would not be atomic.
const MAX_RESULTS = 50;
const MAX_BYTES = 256 * 1024;

/**
 * Appends the results with which a step is over. Where asking the model is next, the request's span goes into the same
 * append, so that the step waits for one commit and not for two. The request is what the log with the results in it
 * projects to; the append says where the log ends, so it is refused if anything came in that the request does not know.
 */
export async function closeCalls(
  ctx: DriveContext,
  results: readonly NewEvent[],
  onRequest: () => void,
): Promise<void> {
  if (results.length === 0) return;
  const { log } = ctx;
  const ahead = lookAhead(ctx, results);
  if (!ahead) return log.append(results, ctx.traceparent);
  const { state, request } = ahead;
  const events = [...results, ...openingOf(state, request.span)];
  const appending = log.appendAtHead(events, ctx.traceparent);
  const { isAppended, opened } = await openMeanwhile(ctx, request.body, appending);
  if (!isAppended) return log.append(results, ctx.traceparent);
  onRequest();
  await sendRequest(ctx, request, opened);
}

/**
 * The request that follows the results, and the state that it is made of. Undefined where that is not certain, not
 * possible at once, or anything is amiss: then the results are appended first and the loop sees to the rest.
 */
function lookAhead(
  ctx: DriveContext,
  results: readonly NewEvent[],
): { state: SessionState; request: PreparedRequest } | undefined {
  if (ctx.stop.aborted || results.length > MAX_RESULTS || sizeOf(results) > MAX_BYTES) return undefined;
  // Tools are listed again before the model is asked.
  if (ctx.changedServers.size > 0) return undefined;
  const state = foldAhead(ctx.log.state, results);
  const action = decide(state);
  if (action.type !== "call_model" || payloadsIn(state).length > 0) return undefined;
  try {
    const projection = project(state);
    if (!keepsPromise(state, projection.digests)) return undefined;
    return { state, request: prepareRequest(state, projection, action.attempt) };
  } catch {
    return undefined;
  }
}

function sizeOf(results: readonly NewEvent[]): number {
  const blocks = results.flatMap(({ body }) =>
    body.$case === "agentToolResult" || body.$case === "agentMcpToolResult" ? body.value.content : [],
  );
  return blocks.reduce((sum, block) => sum + blockSize(block), 0);
}
