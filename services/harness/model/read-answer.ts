import { findMember } from "../../common/json/json-span.ts";
import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import { type Answer, type AnswerListener, ModelError } from "../ports/model.ts";
import { AnswerBlockBuilder } from "./answer-block-builder.ts";
import { modelErrorOf } from "./model-error.ts";
import type { ServerSentEvent } from "./read-sse.ts";
import { readUsage } from "./read-usage.ts";

/** What is known of an answer that is still coming. */
export interface AnswerProgress {
  usage: ModelUsage | undefined;
  firstTokenMs: number | undefined;
}

type Json = Record<string, unknown>;

/**
 * Reads a streamed answer to its end. It is whole only when the provider said so: a stream that ends without
 * message_stop, or with a block still open, throws MODEL_STREAM_CUT and nothing of it counts (B016, M20, M22).
 * Works on the raw events, because the SDK's own accumulation loses a turn over one bad character (M21).
 */
export function readAnswer(
  events: AsyncIterable<ServerSentEvent>,
  listener: AnswerListener,
  progress: AnswerProgress,
  elapsedMs: () => number,
): Promise<WholeAnswer> {
  const whole = Promise.withResolvers<WholeAnswer>();
  // Read on to the stream's end, beside what comes next: a stream that is left early takes its connection with it.
  readEvents(events, listener, progress, elapsedMs, whole.resolve).then(
    () => whole.reject(cut()),
    whole.reject,
  );
  return whole.promise;
}

type WholeAnswer = Omit<Answer, "upstream" | "usage" | "firstTokenMs">;

async function readEvents(
  events: AsyncIterable<ServerSentEvent>,
  listener: AnswerListener,
  progress: AnswerProgress,
  elapsedMs: () => number,
  onWhole: (answer: WholeAnswer) => void,
): Promise<void> {
  const builders = new Map<number, AnswerBlockBuilder>();
  let messageId = "";
  let stopReason = "";
  let stopDetailsJson = "";
  for await (const { data } of events) {
    const event = parse(data);
    switch (event.type) {
      case "message_start": {
        const message = asObject(event.message);
        messageId = typeof message.id === "string" ? message.id : "";
        progress.usage = readUsage(message.usage, progress.usage);
        break;
      }
      case "content_block_start": {
        const builder = new AnswerBlockBuilder(indexOf(event), slice(data, "content_block"));
        const hasType = builder.type !== "" && builder.type.length <= 64;
        if (builders.has(builder.index) || !hasType) throw malformed();
        builders.set(builder.index, builder);
        progress.firstTokenMs ??= elapsedMs();
        listener.onBlockStart(builder.index, builder.type);
        if (builder.firstText !== "") listener.onText(builder.index, builder.firstText);
        break;
      }
      case "content_block_delta": {
        const builder = builders.get(indexOf(event));
        if (!builder || builder.isStopped) throw malformed();
        const text = addDelta(builder, slice(data, "delta"));
        if (text !== "") listener.onText(builder.index, text);
        break;
      }
      case "content_block_stop":
        builders.get(indexOf(event))?.stop();
        break;
      case "message_delta": {
        const delta = asObject(event.delta);
        if (typeof delta.stop_reason === "string") stopReason = delta.stop_reason;
        if (typeof delta.stop_details === "object" && delta.stop_details !== null) {
          stopDetailsJson = slice(slice(data, "delta"), "stop_details");
        }
        progress.usage = readUsage(event.usage, progress.usage);
        break;
      }
      case "message_stop": {
        const all = [...builders.values()].sort((a, b) => a.index - b.index);
        if (stopReason === "" || all.some((builder) => !builder.isStopped)) throw malformed();
        onWhole({ messageId, stopReason, stopDetailsJson, blocks: all.map((builder) => builder.build()) });
        break;
      }
      case "error":
        throw modelErrorOf({ status: undefined, body: event, headers: undefined });
      default:
      // "ping", and kinds not invented yet.
    }
  }
}

/** The stream ended, or broke, before the answer did. */
export function cut(cause?: unknown): ModelError {
  return new ModelError({
    reason: "MODEL_STREAM_CUT",
    part: 7,
    errorType: "model_request_failed_error",
    message: "The model's answer was cut off.",
    isRetryable: true,
    cause,
  });
}

function malformed(): ModelError {
  return cut(new Error("events out of order"));
}

function addDelta(builder: AnswerBlockBuilder, json: string): string {
  try {
    return builder.add(json);
  } catch (cause) {
    throw new ModelError({
      reason: "MODEL_STOP_UNKNOWN",
      part: 7,
      errorType: "model_request_failed_error",
      message: "The model's answer has a form that this version does not know.",
      isRetryable: false,
      cause,
    });
  }
}

function parse(data: string): Json {
  try {
    return asObject(JSON.parse(data));
  } catch {
    throw malformed();
  }
}

function indexOf(event: Json): number {
  if (typeof event.index !== "number") throw malformed();
  return event.index;
}

function slice(json: string, name: string): string {
  const span = findMember(json, name);
  if (!span) throw malformed();
  return json.slice(span.start, span.end);
}

function asObject(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
