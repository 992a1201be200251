import type { ServerResponse } from "node:http";
import { GanglionError } from "../../common/errors/ganglion-error.ts";

interface Envelope {
  status: number;
  type: string;
}

// By code; the SDK retries 408, 409, 429 and 5xx by itself.
const BY_CODE: Record<string, Envelope> = {
  INVALID_ARGUMENT: { status: 400, type: "invalid_request_error" },
  UNAUTHENTICATED: { status: 401, type: "authentication_error" },
  PERMISSION_DENIED: { status: 403, type: "permission_error" },
  NOT_FOUND: { status: 404, type: "not_found_error" },
  FAILED_PRECONDITION: { status: 403, type: "permission_error" },
  RESOURCE_EXHAUSTED: { status: 413, type: "request_too_large" },
  DEADLINE_EXCEEDED: { status: 504, type: "timeout_error" },
  UNAVAILABLE: { status: 503, type: "api_error" },
};

/**
 * Answers an error of ours as the Messages API would, with the reason for programs in the header `ganglion-reason` and
 * the part that failed in `ganglion-error-domain`.
 */
export function sendError(response: ServerResponse, error: unknown): void {
  const known = GanglionError.is(error) ? error : undefined;
  const { status, type } = (known && BY_CODE[known.code]) ?? { status: 500, type: "api_error" };
  const message = known ? `${known.reason}: ${known.message}` : "internal error";
  const headers: Record<string, string> = { "ganglion-error-domain": "ganglion.mcp-proxy" };
  if (known) headers["ganglion-reason"] = known.reason;
  // Whether a retry makes sense is known here, and the SDK would guess from the status alone.
  headers["x-should-retry"] = known?.code === "UNAVAILABLE" ? "true" : "false";
  if (known?.retryAfterMs !== undefined) headers["retry-after-ms"] = String(known.retryAfterMs);
  sendEnvelope(response, { status, type, message, headers });
}

/** Answers with the error envelope of the Messages API. */
export function sendEnvelope(
  response: ServerResponse,
  { status, type, message, headers }: Envelope & { message: string; headers: Record<string, string> },
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ type: "error", error: { type, message } });
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
}
