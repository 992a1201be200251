import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { describeEvent, payloadsOf, type RawContents } from "../domain/context/describe-event.ts";
import { payloadKey } from "../domain/payload-contents.ts";
import { OUTCOME } from "../domain/proto-values.ts";
import { type LogQuery, parseLogQuery } from "../domain/session-log-tool.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { notRun } from "../domain/settle-call.ts";
import { textBlock } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { DriveContext } from "./drive-context.ts";
import { callResult } from "./new-events.ts";
import { orStop } from "./or-stop.ts";

/** Longest time one look into the log may take. */
const TIMEOUT_MS = 20_000;
const PAGE = 200;
/** Events that one search looks through. */
const MAX_SCANNED = 20_000;
/** Characters of one answer, and of one entry in it when there are several. */
const MAX_CHARS = 40_000;
const ENTRY_CHARS = 4000;

/**
 * Answers a call of session_log from the log itself. It has no effect, so a brain that finds it unanswered runs it again
 * (law L4). Undefined = stopped by the signal.
 */
export async function readOwnLog(
  ctx: DriveContext,
  call: Call,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  const query = parseLogQuery(call.inputJson);
  if (typeof query === "string") return callResult(call, notRun(query));
  const startedAt = performance.now();
  const until = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const durationMs = (): bigint => BigInt(Math.round(performance.now() - startedAt));
  try {
    const text = await search(ctx, query, until);
    return callResult(call, completed(text, false), { durationMs: durationMs() });
  } catch (error) {
    if (signal.aborted) return undefined;
    const reason = GanglionError.is(error) ? error.reason : until.aborted ? "DEADLINE_EXCEEDED" : "INTERNAL";
    ctx.logger.warn({ err: error, reason }, "the log could not be read for the model");
    return callResult(call, completed(`The log could not be read (${reason}).`, true));
  }
}

function completed(text: string, isError: boolean): CallResult {
  return { content: [textBlock(text)], isError, outcome: OUTCOME.COMPLETED };
}

async function search(ctx: DriveContext, query: LogQuery, signal: AbortSignal): Promise<string> {
  const { sessionId } = ctx.log.lease;
  const entries: string[] = [];
  let chars = 0;
  let scanned = 0;
  let { afterPosition, beforePosition } = query;
  let note = "";
  const perEntry = query.limit === 1 ? MAX_CHARS : ENTRY_CHARS;
  scan: for (;;) {
    const limit = query.text === "" ? Math.min(PAGE, query.limit) : PAGE;
    const slice = { ...query, afterPosition, beforePosition, limit };
    const page = await orStop(ctx.ports.log.slice(sessionId, slice, signal), signal);
    for (const event of page.events) {
      scanned += 1;
      // One event at a time: a page of large results would be gigabytes.
      const contents = await contentsOf(ctx, event, signal);
      const entry = describeEvent(event, contents, perEntry, query.textOffset, query.text);
      if (entry === undefined) continue;
      if (entries.length === query.limit || chars + entry.length > MAX_CHARS + 1000) {
        note = `There is more: go on ${query.isNewestFirst ? "before" : "from"} position ${event.position}.`;
        break scan;
      }
      entries.push(entry);
      chars += entry.length;
    }
    const last = page.events.at(-1)?.position;
    if (!page.hasMore || last === undefined || query.aroundEventId !== "") break;
    if (scanned >= MAX_SCANNED) {
      note = `Looked through ${scanned} events up to position ${last}; go on from there.`;
      break;
    }
    if (query.isNewestFirst) beforePosition = last;
    else afterPosition = last;
  }
  if (entries.length === 0)
    return ["Nothing in the log matches.", note].filter((line) => line !== "").join(" ");
  return [...entries, note].filter((line) => line !== "").join("\n\n");
}

async function contentsOf(ctx: DriveContext, event: Event, signal: AbortSignal): Promise<RawContents> {
  const { sessionId } = ctx.log.lease;
  const contents = new Map<string, Uint8Array>();
  for (const ref of payloadsOf(event)) {
    const key = payloadKey(ref);
    if (contents.has(key)) continue;
    contents.set(key, await orStop(ctx.ports.log.readPayload(sessionId, ref, signal), signal));
  }
  return contents;
}
