import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { statusTrailers } from "./grpc-status.ts";

/** How a passed call ended. */
export interface PassedCall {
  /** grpc-status as number; 1 when the caller left. */
  readonly code: number;
}

/** A call that is being passed; `end` ends it from our side with a status of ours. */
export interface PassingCall {
  readonly done: Promise<PassedCall>;
  end(error: GanglionError): void;
}

/**
 * passCall joins a caller's stream with one to the service behind: bytes, headers and trailers go through as they are,
 * each side is read only as fast as the other one takes, and whoever leaves takes the other along.
 */
export function passCall(
  caller: ServerHttp2Stream,
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  context: { service: string; traceId: string },
): PassingCall {
  const done = Promise.withResolvers<PassedCall>();
  const upstream: ClientHttp2Stream = session.request(headers, { endStream: false });
  let trailers: OutgoingHttpHeaders | undefined;
  let isOver = false;
  const finish = (code: number) => {
    isOver = true;
    done.resolve({ code });
  };
  // Ends the caller's side with a status; before the first byte as the whole answer, later as trailers.
  const answer = (status: OutgoingHttpHeaders) => {
    if (isOver) return;
    finish(Number(status["grpc-status"] ?? 2));
    trailers = status;
    if (caller.destroyed || caller.closed) return;
    if (caller.headersSent) caller.end();
    else respondStatus(caller, status);
  };
  const lost = (error?: unknown) =>
    answer(statusTrailers(connectionLost(context.service, error), context.traceId));

  caller.pipe(upstream);
  upstream.on("response", (response, flags) => {
    if (caller.destroyed || caller.closed || isOver) return;
    const passed = passedHeaders(response);
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
      finish(Number(passed["grpc-status"] ?? 2));
      upstream.resume();
      caller.respond(passed, { endStream: true });
      // A caller that is still sending is told that nobody reads it.
      caller.close(constants.NGHTTP2_NO_ERROR);
      return;
    }
    caller.respond(passed, { waitForTrailers: true });
    upstream.pipe(caller, { end: false });
  });
  upstream.on("trailers", (received) => {
    trailers = passedHeaders(received);
  });
  caller.on("wantTrailers", () => caller.sendTrailers(trailers ?? { "grpc-status": "14" }));
  upstream.on("end", () => {
    if (isOver) return;
    if (!trailers) return lost();
    finish(Number(trailers["grpc-status"] ?? 2));
    if (!caller.destroyed && !caller.closed) caller.end();
  });
  upstream.on("error", lost);
  upstream.on("close", () => lost());
  caller.on("error", () => {});
  caller.on("close", () => {
    if (!isOver) finish(1);
    if (!upstream.destroyed) upstream.close(constants.NGHTTP2_CANCEL);
  });
  return {
    done: done.promise,
    end: (error) => {
      answer(statusTrailers(error, context.traceId));
      upstream.close(constants.NGHTTP2_CANCEL);
    },
  };
}

/** respondStatus answers a call that has not been answered with nothing but a status. */
export function respondStatus(caller: ServerHttp2Stream, status: OutgoingHttpHeaders): void {
  if (caller.destroyed || caller.closed || caller.headersSent) return;
  caller.respond(
    { ":status": 200, "content-type": "application/grpc+proto", ...status },
    { endStream: true },
  );
  // A caller that is still sending is told that nobody reads it.
  caller.close(constants.NGHTTP2_NO_ERROR);
}

function passedHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { connection: _, "keep-alive": __, "transfer-encoding": ___, date: ____, ...rest } = headers;
  return { ...rest };
}

function connectionLost(service: string, cause: unknown): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "UNREACHABLE",
    message: `the connection to ${service} was lost`,
    domain: `ganglion.${service}`,
    cause,
  });
}
