import { capForLog, fullOutput } from "../domain/cap-output.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { textBlock } from "../domain/text-block.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { DriveContext } from "./drive-context.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { callResult, type ResultDetails } from "./new-events.ts";
import { orStop } from "./or-stop.ts";

/** Most that is stored beside the log. */
const PAYLOAD_BYTES = 32 << 20;
const EXCERPT_CHARS = 1000;

/**
 * The one result of a call as its event: whole where it fits, otherwise cut, with the whole of it stored beside the log
 * first (B031). What cannot be stored is cut all the same and says so: no output may keep a session from going on.
 * Undefined = stopped by the signal.
 */
export async function keepResult(
  ctx: DriveContext,
  call: Call,
  result: CallResult,
  details: ResultDetails,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  const bytes = fullOutput(result.content);
  if (!bytes) return callResult(call, result, details);
  if (bytes.length > PAYLOAD_BYTES) return cutResult(call, result, details);
  const content = { bytes, contentType: "application/json", excerpt: excerptOf(result) };
  const limited = AbortSignal.any([signal, AbortSignal.timeout(ctx.patience.callMs)]);
  try {
    const stored = await orStop(ctx.log.writePayload(content, limited), limited);
    return callResult(call, result, { ...details, fullOutput: stored });
  } catch (error) {
    if (saysLeaseIsLost(error)) throw new LeaseLost("the log refused the epoch", { cause: error });
    if (signal.aborted) return undefined;
    ctx.logger.warn({ err: error, size: bytes.length }, "a full output was not stored");
    return cutResult(call, result, details);
  }
}

/** A result that is cut, and whose full output is nowhere. */
export function cutResult(call: Call, result: CallResult, details: ResultDetails): NewEvent {
  const bytes = fullOutput(result.content);
  if (!bytes) return callResult(call, result, details);
  const note = textBlock(`[The full output of ${bytes.length} bytes is not kept.]`);
  return callResult(call, { ...result, content: [...capForLog(result.content), note] }, details);
}

function excerptOf({ content }: CallResult): string {
  const [first] = content;
  if (first?.type !== "text" || first.data?.$case !== "json") return "";
  const { text } = JSON.parse(new TextDecoder().decode(first.data.value)) as { text?: unknown };
  return typeof text === "string" ? text.slice(0, EXCERPT_CHARS).toWellFormed() : "";
}
