import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Tracing } from "../../common/telemetry/tracing.ts";
import { peerOf } from "../../common/tls/https-server.ts";
import type { SpiffeId } from "../../common/tls/spiffe-id.ts";

/** What is said of a request at the model door afterwards. */
export interface WatchedRequest {
  traceId: string;
  /** Whose certificate it came with, when that is a valid one of the mesh. */
  peer: SpiffeId | undefined;
  /** Adds fields to the request's log line. No payloads. */
  note(fields: Record<string, string | number>): void;
}

/** Gives a request its span, in the caller's trace, and its one log line, as calls over gRPC have them. */
export function watchRequest(
  { log, tracing }: { log: Logger; tracing: Tracing },
  request: IncomingMessage,
  response: ServerResponse,
): WatchedRequest {
  const startedAt = performance.now();
  const parent = request.headersDistinct.traceparent ?? [];
  const route = request.url?.startsWith("/v1/messages") ? "POST /v1/messages" : "other";
  const { span, traceId } = tracing.startSpan(route, "server", parent.length === 1 ? parent[0] : undefined);
  // Asked now: a socket that is closed no longer knows its peer.
  const peer = peerOf(request.socket as TLSSocket);
  const notes: Record<string, string | number> = {};
  response.once("close", () => {
    const status = response.headersSent ? response.statusCode : 0;
    const ms = performance.now() - startedAt;
    span.setAttributes({
      "http.response.status_code": status,
      "ganglion.complete": response.writableFinished,
    });
    if (typeof notes.session_id === "string") span.setAttribute("ganglion.session_id", notes.session_id);
    span.end();
    const outcome = { status, is_complete: response.writableFinished, dur_ms: Math.round(ms * 1000) / 1000 };
    log.info({ route, ...outcome, trace_id: traceId, peer: peer?.uri ?? "", ...notes }, "model request");
  });
  return {
    traceId,
    peer,
    note: (fields) => {
      Object.assign(notes, fields);
    },
  };
}
