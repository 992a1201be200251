import { randomBytes } from "node:crypto";
import { type Context, ROOT_CONTEXT, type SpanContext, trace } from "@opentelemetry/api";

/** Metadata key of W3C trace context. */
export const TRACEPARENT_KEY = "traceparent";

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses a traceparent; undefined when it is absent or not exactly of the W3C form. */
export function parseTraceparent(value: string | undefined): SpanContext | undefined {
  const match = value === undefined ? null : FORM.exec(value);
  if (!match?.[1] || !match[2] || !match[3]) return undefined;
  const [, traceId, spanId, flags] = match;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

/** Writes a span context as a traceparent. */
export function formatTraceparent(context: SpanContext): string {
  return `00-${context.traceId}-${context.spanId}-${(context.traceFlags & 0xff).toString(16).padStart(2, "0")}`;
}

/** The OpenTelemetry context whose current span is the remote one, or the root. */
export function contextOf(parent: SpanContext | undefined): Context {
  return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
}

/** A new traceparent for work that nobody called for, for example a wake-up by a timer. */
export function newTraceparent(): string {
  return `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
}
