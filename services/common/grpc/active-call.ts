import type { ServiceError } from "@grpc/grpc-js";
import { GanglionError } from "../errors/ganglion-error.ts";
import { asGanglionError, toStatus } from "../errors/to-status.ts";
import type { Logger } from "../log/create-logger.ts";
import { TRACEPARENT_KEY } from "../telemetry/trace-context.ts";
import { type ActiveSpan, endSpan } from "../telemetry/tracing.ts";
import type { CallContext } from "./call-context.ts";
import type { MethodContract } from "./contracts.ts";
import { peerIdentity } from "./peer-identity.ts";
import { type Principal, roleName } from "./principal.ts";
import type { ServerState } from "./server-state.ts";
import { refuseRepeatedMetadata } from "./single-metadata.ts";
import type { TransportCall } from "./transport-types.ts";

// setTimeout fires at once for more than this.
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One call in progress: who calls, when it must end, what ends it, and what is said of it
 * afterwards in the log, the metrics and the trace. Ends exactly once.
 */
export class ActiveCall {
  readonly contract: MethodContract;
  readonly #state: ServerState;
  readonly #call: TransportCall;
  readonly #startedAt = performance.now();
  readonly #span: ActiveSpan;
  readonly #abort = new AbortController();
  readonly #deadlineMs: number;
  // A promise of the abort would keep a reaction for each message of a stream that is open for days.
  readonly #waiting = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #principal: Principal | undefined;
  #notes: Record<string, unknown> = {};
  #ended = false;

  constructor(state: ServerState, contract: MethodContract, call: TransportCall) {
    this.#state = state;
    this.contract = contract;
    this.#call = call;
    const traceparent = call.metadata.get(TRACEPARENT_KEY)[0];
    this.#span = state.tracing.startSpan(
      contract.path.slice(1),
      "server",
      typeof traceparent === "string" ? traceparent : undefined,
      { "rpc.system": "grpc", "rpc.service": contract.service, "rpc.method": contract.method },
    );
    this.#deadlineMs = this.#startDeadline();
    call.on("cancelled", () => this.#onCancelled());
    state.active.add(this);
    const labels = { grpc_service: contract.service, grpc_method: contract.method };
    state.metrics.serverStarted.inc({ ...labels, grpc_type: contract.kind });
    state.metrics.serverActive.inc(labels);
    if (call.cancelled) this.#onCancelled();
  }

  /** Aborted when the call must stop; the reason is a GanglionError. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** True once a status was decided. */
  get ended(): boolean {
    return this.#ended;
  }

  /** True for calls that stay open until somebody ends them. */
  get isStream(): boolean {
    return this.contract.kind === "server_stream" || this.contract.kind === "bidi";
  }

  /** Authenticates and authorizes; throws what the caller is to be told. */
  async admit(): Promise<CallContext> {
    refuseRepeatedMetadata(this.#call.metadata);
    const resolved = this.#state.resolvePrincipal(peerIdentity(this.#call), this.#call.metadata);
    const principal = resolved instanceof Promise ? await this.race(resolved) : resolved;
    this.#principal = principal;
    if (!this.contract.access?.callers.has(principal.role)) {
      throw new GanglionError({
        code: "PERMISSION_DENIED",
        reason: "ROLE_NOT_ALLOWED",
        message: `${roleName(principal.role)} may not call ${this.contract.method}`,
        metadata: { role: roleName(principal.role), method: this.contract.path },
      });
    }
    if (this.#state.draining) throw draining();
    const { log } = this.#state;
    const call = this.#call;
    const bindings = { trace_id: this.#span.traceId, rpc: this.contract.path };
    let own: Logger | undefined;
    return {
      principal,
      signal: this.signal,
      deadlineMs: this.#deadlineMs,
      traceparent: this.#span.traceparent,
      traceId: this.#span.traceId,
      metadata: this.#call.metadata,
      path: this.contract.path,
      get peer() {
        return call.getPeer();
      },
      // Most calls log nothing of their own.
      get log() {
        own ??= log.child(bindings);
        return own;
      },
      note: (fields) => {
        for (const [key, value] of Object.entries(fields)) {
          this.#notes[key] = typeof value === "bigint" ? value.toString() : value;
        }
      },
    };
  }

  /** Waits for a promise or for the call to be aborted, whichever is first. */
  race<T>(promise: PromiseLike<T> | T): Promise<T> {
    if (this.#abort.signal.aborted) return Promise.reject(this.#abort.signal.reason);
    return new Promise<T>((resolve, reject) => {
      const stop = () => reject(this.#abort.signal.reason);
      this.#waiting.add(stop);
      Promise.resolve(promise).then(
        (value) => {
          this.#waiting.delete(stop);
          resolve(value);
        },
        (error) => {
          this.#waiting.delete(stop);
          reject(error);
        },
      );
    });
  }

  /** Stops the call: waiting code is rejected with `reason`, which becomes its status. */
  abort(reason: GanglionError): void {
    if (!this.#ended) this.#abortWith(reason);
  }

  /** Ends the call well. */
  succeed(): void {
    this.#end("OK", undefined);
  }

  /** Ends the call with an error; returns what to hand to grpc-js. Never throws. */
  fail(error: unknown, resume?: Record<string, string>): ServiceError {
    let known = asGanglionError(error, this.#span.traceId);
    if (resume && (known.reason === "DRAINING" || known.reason === "CONSUMER_TOO_SLOW")) {
      known = new GanglionError({
        code: known.code,
        reason: known.reason,
        message: known.message,
        metadata: { ...known.metadata, ...resume },
        ...(known.retryAfterMs === undefined ? {} : { retryAfterMs: known.retryAfterMs }),
      });
    }
    this.#end(known.code, known);
    return toStatus(known, { service: this.#state.service, traceId: this.#span.traceId });
  }

  #startDeadline(): number {
    const given = this.#call.getDeadline();
    const asked = given instanceof Date ? given.getTime() : given;
    let deadlineMs = asked;
    if (!Number.isFinite(asked)) {
      // Streams stay open as long as their caller wants; anything else must end.
      if (this.isStream || this.contract.kind === "client_stream") return Number.POSITIVE_INFINITY;
      deadlineMs = Date.now() + (this.contract.access?.defaultDeadlineMs || this.#state.defaultDeadlineMs);
    }
    this.#timer = setTimeout(
      () => this.abort(deadlineExceeded()),
      Math.min(Math.max(0, deadlineMs - Date.now()), MAX_TIMER_MS),
    );
    return deadlineMs;
  }

  #onCancelled(): void {
    if (this.#ended) return;
    // grpc-js has its own timer for the caller's deadline and reports it as a cancellation.
    const isLate = Date.now() >= this.#deadlineMs - 1;
    this.abort(
      isLate
        ? deadlineExceeded()
        : new GanglionError({
            code: "CANCELLED",
            reason: "CANCELLED",
            message: "the caller cancelled the call",
          }),
    );
  }

  #abortWith(reason: GanglionError): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    for (const stop of this.#waiting) stop();
    this.#waiting.clear();
  }

  #end(code: string, error: GanglionError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    // Whatever the handler left waiting on the signal is released, after success as well.
    this.#abortWith(CALL_OVER);
    this.#state.active.delete(this);
    const seconds = (performance.now() - this.#startedAt) / 1000;
    if (error) this.#tell(code, seconds, error);
    // A caller who was answered does not wait until that is written down.
    else setImmediate(() => this.#tell(code, seconds, undefined));
  }

  #tell(code: string, seconds: number, error: GanglionError | undefined): void {
    const state = this.#state;
    const { service, method, kind, path } = this.contract;
    const labels = { grpc_service: service, grpc_method: method };
    state.metrics.serverActive.dec(labels);
    state.metrics.serverHandled.inc({ ...labels, grpc_type: kind, grpc_code: code });
    state.metrics.serverHandling.observe({ ...labels, grpc_type: kind }, seconds);
    endSpan(this.#span, code);
    const line = {
      rpc: path,
      code,
      dur_ms: Math.round(seconds * 1e6) / 1000,
      trace_id: this.#span.traceId,
      peer: this.#principal?.peerSpiffeId ?? this.#call.getPeer(),
      ...(this.#principal ? { role: roleName(this.#principal.role) } : {}),
      ...this.#notes,
    };
    if (!error) state.callLog.info(line, "call");
    else if (error.code === "INTERNAL" || error.code === "DATA_LOSS" || error.code === "UNKNOWN") {
      state.callLog.error({ ...line, reason: error.reason, err: error.cause ?? error }, "call");
    } else {
      const cause = error.cause === undefined ? {} : { err: error.cause };
      state.callLog.info({ ...line, reason: error.reason, ...cause }, "call");
    }
  }
}

/** What a call is told when the server goes away; safe to retry elsewhere. */
export function draining(): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "DRAINING",
    message: "the server is shutting down",
    retryAfterMs: 100,
  });
}

function deadlineExceeded(): GanglionError {
  return new GanglionError({
    code: "DEADLINE_EXCEEDED",
    reason: "DEADLINE_EXCEEDED",
    message: "the call did not finish before its deadline",
  });
}

// One for all: nobody is told of it, and making an error costs a stack trace.
const CALL_OVER = new GanglionError({ code: "CANCELLED", reason: "CALL_OVER", message: "the call is over" });
