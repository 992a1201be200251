import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { PRINCIPAL_KEY } from "../../common/grpc/principal.ts";

/** Only for the gateway, or only for one hop. */
const DROPPED = new Set([
  "authorization",
  "x-api-key",
  "cookie",
  "host",
  "connection",
  "keep-alive",
  "upgrade",
]);

/**
 * upstreamHeaders copies a call's headers for the service behind us, without the caller's credentials and with who the
 * caller is. Headers of our own name space are ours alone: sent by a caller they are refused.
 */
export function upstreamHeaders(
  headers: IncomingHttpHeaders,
  principal: Buffer | undefined,
  traceparent: string,
): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = {
    ":method": "POST",
    ":path": headers[":path"],
    ":scheme": "https",
    ...(principal ? { [PRINCIPAL_KEY]: principal.toString("base64") } : {}),
  };
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":") && !DROPPED.has(name)) passed[name] = value;
  }
  passed.te = "trailers";
  passed.traceparent = traceparent;
  return passed;
}

/** refuseOwnNames refuses metadata that only the gateway may send. */
export function refuseOwnNames(headers: IncomingHttpHeaders): void {
  const own = Object.keys(headers).find((name) => name.startsWith("ganglion-"));
  if (own === undefined) return;
  throw new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "PRINCIPAL_NOT_ACCEPTED",
    message: "metadata named ganglion-* is not accepted from callers",
    metadata: { key: own },
  });
}
