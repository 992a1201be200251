import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { BadRequest, ErrorInfo, RetryInfo } from "../../gen/google/rpc/error_details.ts";
import { Status } from "../../gen/google/rpc/status.ts";
import { CODES, type Code, GanglionError } from "./ganglion-error.ts";

/** Key of the trailer that carries the encoded google.rpc.Status. */
export const STATUS_DETAILS_KEY = "grpc-status-details-bin";

// Clients in other languages cap all headers near 8 KB; base64 adds a third.
const DETAILS_MAX_BYTES = 4096;
const MESSAGE_MAX_CHARS = 200;
const METADATA_VALUE_MAX_CHARS = 256;
const METADATA_MAX_BYTES = 1536;

/** Where an error is turned into a status. */
export interface StatusOrigin {
  /** Service name, for example "session"; becomes the ErrorInfo domain "ganglion.session". */
  service: string;
  /** Trace id given to the caller of an internal error so that an operator can find its cause. */
  traceId: string;
}

/** Turns anything thrown into a GanglionError; what is not one becomes INTERNAL "internal error". */
export function asGanglionError(error: unknown, traceId: string): GanglionError {
  if (error instanceof GanglionError) return error;
  return new GanglionError({
    code: "INTERNAL",
    reason: "INTERNAL",
    message: "internal error",
    metadata: { trace_id: traceId },
    cause: error,
  });
}

/** The only converter from an error to what goes on the wire. Never throws. */
export function toStatus(error: unknown, origin: StatusOrigin): ServiceError {
  const known = asGanglionError(error, origin.traceId);
  const code = CODES[known.code];
  const message = printable(known.message, MESSAGE_MAX_CHARS);
  const metadata = new Metadata();
  metadata.set(STATUS_DETAILS_KEY, encodeDetails(known, code, message, origin));
  return Object.assign(new Error(message), { code, details: message, metadata });
}

function encodeDetails(error: GanglionError, code: number, message: string, origin: StatusOrigin): Buffer {
  const info = any(
    "google.rpc.ErrorInfo",
    ErrorInfo.encode({
      reason: error.reason,
      domain: error.domain ?? `ganglion.${origin.service}`,
      metadata: boundedMetadata(error.metadata),
    }).finish(),
  );
  const details = [info];
  if (error.retryAfterMs !== undefined) {
    const ms = Math.max(0, Math.ceil(error.retryAfterMs));
    const retryDelay = { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
    details.push(any("google.rpc.RetryInfo", RetryInfo.encode({ retryDelay }).finish()));
  }
  // Violations are dropped from the end until everything fits: the first ones help most.
  for (let kept = Math.min(error.violations.length, 64); kept >= 0; kept = Math.floor(kept / 2) || kept - 1) {
    const fields = error.violations.slice(0, kept).map((v) => ({
      field: printable(v.field, 128),
      description: printable(v.description, MESSAGE_MAX_CHARS),
      reason: "",
      localizedMessage: undefined,
    }));
    const all =
      kept === 0
        ? details
        : [...details, any("google.rpc.BadRequest", BadRequest.encode({ fieldViolations: fields }).finish())];
    const bytes = Status.encode({ code, message, details: all }).finish();
    if (bytes.length <= DETAILS_MAX_BYTES) return Buffer.from(bytes);
  }
  return Buffer.from(Status.encode({ code, message, details: [] }).finish());
}

function any(type: string, value: Uint8Array) {
  return { typeUrl: `type.googleapis.com/${type}`, value: Buffer.from(value) };
}

function boundedMetadata(metadata: Readonly<Record<string, string>>): Record<string, string> {
  // No prototype: a key named "__proto__" is data like any other.
  const out = Object.create(null) as Record<string, string>;
  let left = METADATA_MAX_BYTES;
  for (const [key, value] of Object.entries(metadata)) {
    const [name, fact] = [printable(key, 64), printable(String(value), METADATA_VALUE_MAX_CHARS)];
    left -= Buffer.byteLength(name) + Buffer.byteLength(fact) + 8;
    if (left < 0) break;
    out[name] = fact;
  }
  return out;
}

/** Cut, without control characters and lone surrogates: encodeURI throws on the latter. */
function printable(text: string, maxChars: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  const clean = text.replace(/[\u0000-\u001f\u007f]+/g, " ");
  return (clean.length > maxChars ? `${clean.slice(0, maxChars - 1)}…` : clean).toWellFormed();
}

/** Number of a code name, for libraries that want numbers. */
export function codeNumber(code: Code): number {
  return CODES[code];
}
