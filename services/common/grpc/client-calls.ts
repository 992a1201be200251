import { type Client, type CallOptions as GrpcCallOptions, Metadata } from "@grpc/grpc-js";
import { crashPoint } from "../crash/crash-point.ts";
import { fromStatus } from "../errors/from-status.ts";
import { GanglionError } from "../errors/ganglion-error.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { TRACEPARENT_KEY } from "../telemetry/trace-context.ts";
import { type ActiveSpan, endSpan, type Tracing } from "../telemetry/tracing.ts";
import type { CallOptions } from "./client-options.ts";
import type { MethodDefinition } from "./handlers.ts";

type Method = MethodDefinition<unknown, unknown>;

/** What the calls of one client share. */
export interface Dialer {
  client: Client;
  /** Service at the other end, for errors. */
  service: string;
  timeoutMs: number;
  tracing: Tracing | undefined;
  metrics: Metrics | undefined;
}

interface Cancellable {
  cancel(): void;
}

/** An outgoing call: its metadata and limits, what cancels it, and how it ended. */
class OutgoingCall {
  readonly metadata: Metadata;
  readonly options: GrpcCallOptions;
  readonly #dialer: Dialer;
  readonly #method: Method;
  readonly #signals: AbortSignal[];
  readonly #span: ActiveSpan | undefined;
  readonly #deadlineMs: number;
  #release: () => void = () => {};

  constructor(dialer: Dialer, method: Method, options: CallOptions, defaultTimeoutMs: number) {
    this.#dialer = dialer;
    this.#method = method;
    this.#signals = [options.parent?.signal, options.signal].filter((signal) => signal !== undefined);
    const own = Date.now() + (options.timeoutMs ?? defaultTimeoutMs);
    this.#deadlineMs = Math.min(own, options.parent?.deadlineMs ?? Number.POSITIVE_INFINITY);
    this.#throwIfOver();
    this.#span = dialer.tracing?.startSpan(method.path.slice(1), "client", options.parent?.traceparent);
    this.metadata = new Metadata(options.waitForReady ? { waitForReady: true } : {});
    for (const [key, value] of Object.entries(options.metadata ?? {})) this.metadata.set(key, value);
    const traceparent = this.#span?.traceparent ?? options.parent?.traceparent;
    if (traceparent) this.metadata.set(TRACEPARENT_KEY, traceparent);
    this.options = Number.isFinite(this.#deadlineMs) ? { deadline: this.#deadlineMs } : {};
  }

  /** Cancels the call when a signal fires. */
  follow(call: Cancellable): void {
    const cancel = () => call.cancel();
    for (const signal of this.#signals) signal.addEventListener("abort", cancel);
    this.#release = () => {
      for (const signal of this.#signals) signal.removeEventListener("abort", cancel);
    };
  }

  /** Marks the call as over; gives the error to throw when there was one. */
  end(error?: unknown): GanglionError | undefined {
    this.#release();
    const known = error === undefined ? undefined : this.#explain(error);
    const code = known?.code ?? "OK";
    if (this.#span) endSpan(this.#span, code);
    const [, service = "", method = ""] = this.#method.path.split("/");
    this.#dialer.metrics?.clientHandled.inc({ grpc_service: service, grpc_method: method, grpc_code: code });
    return known;
  }

  // A call that we cancelled ourselves ended for the reason of the signal.
  #explain(error: unknown): GanglionError {
    const known = fromStatus(error, this.#dialer.service);
    const fired = this.#signals.find((signal) => signal.aborted);
    if (!fired || known.code !== "CANCELLED") return known;
    return reasonOf(fired);
  }

  #throwIfOver(): void {
    const fired = this.#signals.find((signal) => signal.aborted);
    if (fired) throw reasonOf(fired);
    if (this.#deadlineMs > Date.now()) return;
    throw new GanglionError({
      code: "DEADLINE_EXCEEDED",
      reason: "DEADLINE_EXCEEDED",
      message: `no time was left to call ${this.#dialer.service}`,
    });
  }
}

/** Calls a unary method. */
export async function callUnary(
  dialer: Dialer,
  method: Method,
  request: unknown,
  options: CallOptions,
): Promise<unknown> {
  const outgoing = new OutgoingCall(dialer, method, options, dialer.timeoutMs);
  crashPoint("send", method.path);
  return new Promise((resolve, reject) => {
    const call = withoutStack(() =>
      dialer.client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        outgoing.metadata,
        outgoing.options,
        (error, response) => {
          crashPoint("receive", method.path);
          const failure = outgoing.end(error ?? undefined);
          if (failure) reject(failure);
          else resolve(response);
        },
      ),
    );
    outgoing.follow(call);
  });
}

/** Calls a method that takes a stream and answers once. */
export async function callStreamOnce(
  dialer: Dialer,
  method: Method,
  requests: AsyncIterable<unknown> | Iterable<unknown>,
  options: CallOptions,
): Promise<unknown> {
  const outgoing = new OutgoingCall(dialer, method, options, dialer.timeoutMs);
  crashPoint("send", method.path);
  return new Promise((resolve, reject) => {
    let over = false;
    const call = dialer.client.makeClientStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      outgoing.metadata,
      outgoing.options,
      (error, response) => {
        over = true;
        crashPoint("receive", method.path);
        const failure = outgoing.end(error ?? undefined);
        if (failure) reject(failure);
        else resolve(response);
      },
    );
    // The callback reports errors; the event would be uncaught.
    call.on("error", () => {});
    outgoing.follow(call);
    sendAll(call, requests, () => over).catch((error) => {
      reject(error);
      call.cancel();
    });
  });
}

/** Calls a method that answers with a stream, with one request or a stream of them. */
export async function* callStream(
  dialer: Dialer,
  method: Method,
  input: unknown,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  const outgoing = new OutgoingCall(dialer, method, options, Number.POSITIVE_INFINITY);
  const { metadata, options: grpcOptions } = outgoing;
  const { path, requestSerialize, responseDeserialize } = method;
  let over = false;
  let sendFailure: unknown;
  const open = () => {
    if (!method.requestStream) {
      return dialer.client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        input,
        metadata,
        grpcOptions,
      );
    }
    const duplex = dialer.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
      grpcOptions,
    );
    sendAll(duplex, input as AsyncIterable<unknown>, () => over).catch((error) => {
      sendFailure = error;
      duplex.cancel();
    });
    return duplex;
  };
  crashPoint("send", path);
  const call = open();
  // Cancelling after the loop was left reports an error to nobody.
  call.on("error", () => {});
  outgoing.follow(call);
  let failure: unknown;
  try {
    for await (const message of call) {
      crashPoint("receive", path);
      yield message;
    }
  } catch (error) {
    failure = sendFailure ?? error;
  } finally {
    over = true;
    call.cancel();
    failure = outgoing.end(failure);
  }
  if (failure !== undefined) throw failure;
}

async function sendAll(
  call: {
    write(message: unknown): boolean;
    end(): unknown;
    once(event: string, done: () => void): unknown;
    off(event: string, done: () => void): unknown;
  },
  messages: AsyncIterable<unknown> | Iterable<unknown>,
  isOver: () => boolean,
): Promise<void> {
  for await (const message of messages) {
    if (isOver()) return;
    if (!call.write(message)) await roomIn(call);
  }
  if (!isOver()) call.end();
}

function roomIn(call: {
  once(event: string, done: () => void): unknown;
  off(event: string, done: () => void): unknown;
}): Promise<void> {
  const events = ["drain", "close", "error", "status"];
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) call.off(event, done);
      resolve();
    };
    for (const event of events) call.once(event, done);
  });
}

// grpc-js takes the caller's stack for each call, in case it fails; what we throw then has one of its own.
function withoutStack<T>(begin: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return begin();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function reasonOf(signal: AbortSignal): GanglionError {
  if (signal.reason instanceof GanglionError) return signal.reason;
  return new GanglionError({
    code: "CANCELLED",
    reason: "CANCELLED",
    message: "the call was cancelled",
    cause: signal.reason,
  });
}
