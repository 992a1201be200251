import type { OutgoingHttpHeaders } from "node:http2";
import { STATUS_DETAILS_KEY, toStatus } from "../../common/errors/to-status.ts";

/** statusTrailers writes an error as gRPC trailers. */
export function statusTrailers(error: unknown, traceId: string): OutgoingHttpHeaders {
  const status = toStatus(error, { service: "gateway", traceId });
  const [details] = status.metadata.get(STATUS_DETAILS_KEY);
  return {
    "grpc-status": String(status.code),
    "grpc-message": encodeMessage(status.details),
    ...(Buffer.isBuffer(details)
      ? { [STATUS_DETAILS_KEY]: details.toString("base64").replace(/=+$/, "") }
      : {}),
  };
}

/** Percent-encoded UTF-8, as gRPC wants it: everything but printable ASCII, and the percent sign. */
function encodeMessage(message: string): string {
  return [...Buffer.from(message, "utf8")]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    )
    .join("");
}
