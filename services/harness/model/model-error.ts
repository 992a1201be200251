import { FAILURES } from "../domain/failures.ts";
import { PART } from "../domain/proto-values.ts";
import { ModelError, type ModelErrorInit } from "../ports/model.ts";

/** What came back instead of an answer. */
export interface FailedResponse {
  /** HTTP status; undefined for an error inside a stream, which has none (M19). */
  status: number | undefined;
  /** The parsed body or event. */
  body: unknown;
  headers: Headers | undefined;
}

type Kind = Pick<ModelErrorInit, "reason" | "errorType" | "message" | "isRetryable" | "part">;

const overloaded: Kind = {
  reason: "MODEL_OVERLOADED",
  errorType: "model_overloaded_error",
  message: "The model's API is overloaded.",
  isRetryable: true,
  part: PART.MODEL,
};
const rateLimited: Kind = {
  reason: "MODEL_RATE_LIMITED",
  errorType: "model_rate_limited_error",
  message: "The model's API limits the rate of requests.",
  isRetryable: true,
  part: PART.MODEL,
};
const failed: Kind = {
  reason: "MODEL_FAILED",
  errorType: "model_request_failed_error",
  message: "The model's API failed.",
  isRetryable: true,
  part: PART.MODEL,
};
const unauthorized: Kind = {
  reason: "MODEL_UNAUTHORIZED",
  errorType: "model_request_failed_error",
  message: "The model's API refused the stored credential.",
  isRetryable: false,
  part: PART.MODEL,
};
const billing: Kind = {
  reason: "MODEL_BILLING",
  errorType: "billing_error",
  message: "The model's API says that the account cannot pay.",
  isRetryable: false,
  part: PART.MODEL,
};
// We built the request, so the fault is ours and nobody who called us is to blame (B023).
const rejected: Kind = {
  reason: "MODEL_REQUEST_REJECTED",
  errorType: "model_request_failed_error",
  message: "The model's API refused the request that the harness built.",
  isRetryable: false,
  part: PART.BRAIN,
};

const tooLong: Kind = {
  ...FAILURES.contextExceeded,
  isRetryable: false,
};
// The proxy passes these words on and no others.
const TOO_LONG = /^(prompt is too long|input length and `max_tokens` exceed context limit)/;

const BY_TYPE: Record<string, Kind> = {
  overloaded_error: overloaded,
  rate_limit_error: rateLimited,
  api_error: failed,
  timeout_error: failed,
  authentication_error: unauthorized,
  permission_error: unauthorized,
  billing_error: billing,
  invalid_request_error: rejected,
  not_found_error: rejected,
  request_too_large: rejected,
};

const BY_STATUS: Record<number, Kind> = {
  400: rejected,
  401: unauthorized,
  402: billing,
  403: unauthorized,
  404: rejected,
  413: rejected,
  429: rateLimited,
  529: overloaded,
};

/** Classifies what the model's API, or the proxy before it, answered: by the type in the body, then by status. */
export function modelErrorOf(response: FailedResponse): ModelError {
  const own = proxyErrorOf(response);
  if (own) return own;
  const type = typeOf(response.body);
  if (type === "invalid_request_error" && TOO_LONG.test(messageOf(response.body)))
    return new ModelError(tooLong);
  const kind =
    BY_TYPE[type] ?? (response.status === undefined ? failed : (BY_STATUS[response.status] ?? failed));
  const retryAfterMs = readRetryAfter(response.headers);
  return new ModelError({
    ...kind,
    ...(kind.isRetryable && retryAfterMs !== undefined ? { retryAfterMs } : {}),
    upstream: response.headers?.get("ganglion-model-upstream") ?? "",
  });
}

// Reasons of mcp-proxy after which trying again may help.
const RETRYABLE = new Set([
  "VAULT_UNAVAILABLE",
  "AUDIT_UNAVAILABLE",
  "DATABASE_UNAVAILABLE",
  "UPSTREAM_UNREACHABLE",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_MALFORMED",
  "LOG_UNAVAILABLE",
  "DRAINING",
]);

/** The proxy answers for itself with its own reason, so that the part at fault can be named (law L8). */
function proxyErrorOf({ status, headers }: FailedResponse): ModelError | undefined {
  const reason = headers?.get("ganglion-reason");
  if (!reason || status === undefined) return undefined;
  const retryAfterMs = readRetryAfter(headers);
  const isRetryable = RETRYABLE.has(reason);
  return new ModelError({
    reason,
    part: reason.startsWith("VAULT_") || reason.startsWith("CRED_") ? PART.VAULT : partOf(reason),
    errorType: "model_request_failed_error",
    message: `The credential proxy did not pass the request on (${reason}).`,
    isRetryable,
    ...(isRetryable && retryAfterMs !== undefined ? { retryAfterMs } : {}),
  });
}

function partOf(reason: string): ModelErrorInit["part"] {
  return reason.startsWith("UPSTREAM_") ? PART.MODEL : PART.PROXY;
}

function typeOf(body: unknown): string {
  const type = asObject(asObject(body).error).type;
  return typeof type === "string" ? type : "";
}

function messageOf(body: unknown): string {
  const message = asObject(asObject(body).error).message;
  return typeof message === "string" ? message : "";
}

function readRetryAfter(headers: Headers | undefined): number | undefined {
  const ms = headers?.get("retry-after-ms");
  if (ms && /^\d{1,12}$/.test(ms)) return Number(ms);
  const value = headers?.get("retry-after");
  if (!value) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds * 1000 : undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
