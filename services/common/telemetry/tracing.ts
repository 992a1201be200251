import {
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider, RandomIdGenerator } from "@opentelemetry/sdk-trace-node";
import { VERSION } from "../version.ts";
import { contextOf, formatTraceparent, parseTraceparent } from "./trace-context.ts";

/** A span with what is needed to carry it on. */
export interface ActiveSpan {
  span: Span;
  traceId: string;
  /** To be sent to whoever is called on behalf of this span. */
  traceparent: string;
}

/** Starts spans; parents are passed explicitly, so no asynchronous context is tracked. */
export interface Tracing {
  startSpan(
    name: string,
    kind: "server" | "client" | "internal",
    traceparent: string | undefined,
    attributes?: Record<string, string | number | boolean>,
  ): ActiveSpan;
  /** Sends what is buffered; bounded in time. */
  shutdown(): Promise<void>;
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/**
 * Tracing of a process. Trace context is made and propagated always; spans are exported over
 * OTLP/HTTP when OTEL_EXPORTER_OTLP_ENDPOINT is set.
 */
export function createTracing(
  service: string,
  instance: string,
  env: NodeJS.ProcessEnv = process.env,
): Tracing {
  const exporting =
    (env.OTEL_EXPORTER_OTLP_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? "") !== "" &&
    env.OTEL_SDK_DISABLED !== "true";
  if (!exporting && env.OTEL_TRACES_SAMPLER === undefined) return propagateOnly();
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({
      "service.name": env.OTEL_SERVICE_NAME ?? `ganglion-${service}`,
      "service.instance.id": instance,
      "service.version": VERSION,
    }),
    spanProcessors: exporting ? [new BatchSpanProcessor(new OTLPTraceExporter())] : [],
  });
  const tracer: Tracer = provider.getTracer("ganglion", VERSION);
  return {
    startSpan(name, kind, traceparent, attributes) {
      const parent = contextOf(parseTraceparent(traceparent));
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], ...(attributes ? { attributes } : {}) },
        parent,
      );
      return activeSpan(span, span.spanContext());
    },
    async shutdown() {
      const timeout = new Promise<void>((resolve) => setTimeout(resolve, 2000).unref());
      await Promise.race([provider.shutdown().catch(() => {}), timeout]);
    },
  };
}

// Where nobody is told of spans, their ids are all that is needed of them; a span that records costs each call more.
function propagateOnly(): Tracing {
  const ids = new RandomIdGenerator();
  return {
    startSpan(_name, _kind, traceparent) {
      const parent = parseTraceparent(traceparent);
      const context: SpanContext = {
        traceId: parent?.traceId ?? ids.generateTraceId(),
        spanId: ids.generateSpanId(),
        // A new trace is one to be recorded, if others do; a trace that exists is what it was said to be.
        traceFlags: (parent?.traceFlags ?? 1) & 1,
      };
      return activeSpan(trace.wrapSpanContext(context), context);
    },
    shutdown: async () => {},
  };
}

function activeSpan(span: Span, context: SpanContext): ActiveSpan {
  return { span, traceId: context.traceId, traceparent: formatTraceparent(context) };
}

/** Ends a span, marked as failed when a code other than OK is given. */
export function endSpan(active: ActiveSpan, code: string): void {
  active.span.setAttribute("rpc.grpc.status_code_name", code);
  if (code !== "OK") active.span.setStatus({ code: SpanStatusCode.ERROR, message: code });
  active.span.end();
}
