import type { ServiceError } from "@grpc/grpc-js";
import { BadRequest, ErrorInfo, RetryInfo } from "../../gen/google/rpc/error_details.ts";
import { Status } from "../../gen/google/rpc/status.ts";
import { CODES, type Code, GanglionError, type GanglionErrorInit } from "./ganglion-error.ts";
import { STATUS_DETAILS_KEY } from "./to-status.ts";

const NAMES = new Map<number, Code>(Object.entries(CODES).map(([name, number]) => [number, name as Code]));

/**
 * Turns what a gRPC client reports into a GanglionError that names the part at fault.
 * `service` is the part that was called, for example "sandbox".
 */
export function fromStatus(error: unknown, service: string): GanglionError {
  if (error instanceof GanglionError) return error;
  if (!isServiceError(error)) {
    return new GanglionError({
      code: "INTERNAL",
      reason: "CLIENT_FAILURE",
      message: `call to ${service} failed`,
      domain: `ganglion.${service}`,
      cause: error,
    });
  }
  const code = NAMES.get(error.code) ?? "UNKNOWN";
  const bytes = error.metadata?.get(STATUS_DETAILS_KEY)[0];
  const detailed = Buffer.isBuffer(bytes) ? decodeDetails(bytes) : undefined;
  if (detailed?.reason !== undefined) {
    return new GanglionError({
      domain: `ganglion.${service}`,
      ...detailed,
      code,
      reason: detailed.reason,
      message: error.details,
      cause: error,
    });
  }
  return new GanglionError({
    ...withoutDetails(code, service),
    code,
    domain: `ganglion.${service}`,
    cause: error,
  });
}

// A status without our details was made by a gRPC library, ours or the peer's: its text may
// hold addresses or worse, so it stays in the cause.
function withoutDetails(code: Code, service: string): { reason: string; message: string } {
  switch (code) {
    case "UNAVAILABLE":
      return { reason: "UNREACHABLE", message: `${service} cannot be reached` };
    case "DEADLINE_EXCEEDED":
      return { reason: "DEADLINE_EXCEEDED", message: `${service} did not answer in time` };
    case "CANCELLED":
      return { reason: "CANCELLED", message: `call to ${service} was cancelled` };
    case "RESOURCE_EXHAUSTED":
      return { reason: "MESSAGE_TOO_LARGE", message: `a message to or from ${service} exceeds the limit` };
    default:
      return { reason: code, message: `${service} answered ${code}` };
  }
}

function decodeDetails(bytes: Uint8Array): Partial<GanglionErrorInit> | undefined {
  try {
    const out: Partial<GanglionErrorInit> = {};
    for (const detail of Status.decode(bytes).details) {
      if (detail.typeUrl.endsWith("/google.rpc.ErrorInfo")) {
        const info = ErrorInfo.decode(detail.value);
        Object.assign(out, { reason: info.reason, domain: info.domain, metadata: { ...info.metadata } });
      } else if (detail.typeUrl.endsWith("/google.rpc.RetryInfo")) {
        const delay = RetryInfo.decode(detail.value).retryDelay;
        if (delay) out.retryAfterMs = Number(delay.seconds) * 1000 + delay.nanos / 1_000_000;
      } else if (detail.typeUrl.endsWith("/google.rpc.BadRequest")) {
        out.violations = BadRequest.decode(detail.value).fieldViolations.map(({ field, description }) => ({
          field,
          description,
        }));
      }
    }
    return out;
  } catch {
    return undefined;
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "details" in error;
}
