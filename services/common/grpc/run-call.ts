import { crashPoint } from "../crash/crash-point.ts";
import { GanglionError } from "../errors/ganglion-error.ts";
import { ActiveCall } from "./active-call.ts";
import type { CallContext } from "./call-context.ts";
import type { MethodContract } from "./contracts.ts";
import type { AnyHandler, MethodDefinition, StreamOptions } from "./handlers.ts";
import { encodeResponse, takeRequest } from "./message-codec.ts";
import { http2StreamOf } from "./peer-identity.ts";
import type { ServerState } from "./server-state.ts";
import { StreamWriter } from "./stream-writer.ts";
import type { TransportCall, TransportCallback } from "./transport-types.ts";

const NGHTTP2_CANCEL = 8;
// A reader that takes nothing cannot take the status either: its stream is reset after this.
const STALLED_STATUS_MS = 30_000;

type Method = MethodDefinition<unknown, unknown>;
type TransportHandler = (call: TransportCall, callback: TransportCallback) => void;

/**
 * Turns a handler into what grpc-js calls. Whatever the handler does, throw, reject, hang or
 * answer nonsense, the caller gets a status and the process lives. [M02][M03][B142]
 */
export function transportHandler(
  state: ServerState,
  contract: MethodContract,
  method: Method,
  handler: AnyHandler | undefined,
): TransportHandler {
  const run = handler ?? { kind: contract.kind, run: unimplemented, options: {} };
  switch (run.kind) {
    case "unary":
      return answerOnce(state, contract, method, (call, ctx) =>
        run.run(noteSession(takeRequest(call.request), ctx), ctx),
      );
    case "client_stream":
      return answerOnce(
        state,
        contract,
        method,
        (call, ctx, active) => run.run(requestsOf(call, active), ctx) as Promise<unknown>,
      );
    case "server_stream":
      return answerStream(state, contract, method, run.options, (call, ctx) =>
        run.run(noteSession(takeRequest(call.request), ctx), ctx),
      );
    case "bidi":
      return answerStream(state, contract, method, run.options, (call, ctx, active) =>
        run.run(requestsOf(call, active), ctx),
      );
  }
}

function answerOnce(
  state: ServerState,
  contract: MethodContract,
  method: Method,
  run: (call: TransportCall, ctx: CallContext, active: ActiveCall) => Promise<unknown>,
): TransportHandler {
  return (call, callback) => {
    const active = new ActiveCall(state, contract, call);
    const work = async () => {
      try {
        const ctx = await active.admit();
        crashPoint("serve", method.path, "received");
        const response = encodeResponse(method, await active.race(run(call, ctx, active)));
        crashPoint("serve", method.path, "answering");
        active.succeed();
        callback(null, response);
      } catch (error) {
        callback(active.fail(error));
      }
    };
    work().catch((error) => state.log.error({ err: error }, "a call could not be ended"));
  };
}

function answerStream(
  state: ServerState,
  contract: MethodContract,
  method: Method,
  options: StreamOptions<unknown>,
  run: (call: TransportCall, ctx: CallContext, active: ActiveCall) => AsyncIterable<unknown>,
): TransportHandler {
  const labels = { grpc_service: contract.service, grpc_method: contract.method };
  return (call) => {
    const active = new ActiveCall(state, contract, call);
    let last: { message: unknown } | undefined;
    const work = async () => {
      const writer = new StreamWriter(call, active, state.slowConsumerMs);
      try {
        const ctx = await active.admit();
        crashPoint("serve", method.path, "received");
        const iterator = run(call, ctx, active)[Symbol.asyncIterator]();
        try {
          for (;;) {
            const next = await active.race(iterator.next());
            if (next.done) break;
            crashPoint("serve", method.path, "answering");
            writer.enqueue(encodeResponse(method, next.value));
            last = { message: next.value };
            state.metrics.serverSent.inc(labels);
            await writer.room();
          }
        } finally {
          closeIterator(iterator, state);
        }
        await writer.flush();
        active.succeed();
        call.end();
      } catch (error) {
        const status = active.fail(error, resumeFacts(options, last));
        // A stream that the caller has left takes no status. [M05]
        if (call.cancelled) return;
        resetWhenStalled(call);
        call.emit("error", status);
      }
    };
    work().catch((error) => state.log.error({ err: error }, "a stream could not be ended"));
  };
}

// Not awaited: a generator that waits for something that never comes must not hold the status back.
function closeIterator(iterator: AsyncIterator<unknown>, state: ServerState): void {
  Promise.resolve(iterator.return?.()).catch((error) =>
    state.log.warn({ err: error }, "stream cleanup failed"),
  );
}

function resumeFacts(
  options: StreamOptions<unknown>,
  last: { message: unknown } | undefined,
): Record<string, string> | undefined {
  try {
    return last && options.resume?.(last.message);
  } catch {
    return undefined;
  }
}

function resetWhenStalled(call: TransportCall): void {
  const stream = http2StreamOf(call);
  if (!stream?.close) return;
  const timer = setTimeout(() => stream.close?.(NGHTTP2_CANCEL), STALLED_STATUS_MS);
  timer.unref();
  call.on("cancelled", () => clearTimeout(timer));
}

// What is awaited of a caller that has left is not awaited for ever.
async function* requestsOf(call: TransportCall, active: ActiveCall): AsyncGenerator<unknown> {
  const requests = (call as unknown as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await active.race(requests.next());
      if (next.done) return;
      yield takeRequest(next.value);
    }
  } finally {
    requests.return?.().catch(() => {});
  }
}

/** Puts the session a request names into the call's log line. */
function noteSession(request: unknown, ctx: CallContext): unknown {
  const id = (request as { sessionId?: unknown } | null)?.sessionId;
  if (typeof id === "string" && /^[a-z]+_[0-9A-Za-z_]{1,64}$/.test(id)) ctx.note({ session_id: id });
  return request;
}

function unimplemented(): never {
  throw new GanglionError({
    code: "UNIMPLEMENTED",
    reason: "NOT_SERVED_HERE",
    message: "this method is not served at this address",
  });
}
