import type { Code, GanglionError } from "../../common/errors/ganglion-error.ts";

/** An error as the REST API answers it. */
export interface RestError {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: {
    readonly type: "error";
    readonly error: {
      readonly type: string;
      readonly message: string;
      readonly details?: Record<string, unknown>;
    };
    readonly request_id: string;
  };
}

const BY_CODE: Record<Code, readonly [number, string]> = {
  CANCELLED: [499, "api_error"],
  UNKNOWN: [500, "api_error"],
  INVALID_ARGUMENT: [400, "invalid_request_error"],
  DEADLINE_EXCEEDED: [504, "timeout_error"],
  NOT_FOUND: [404, "not_found_error"],
  ALREADY_EXISTS: [409, "conflict_error"],
  PERMISSION_DENIED: [403, "permission_error"],
  RESOURCE_EXHAUSTED: [429, "rate_limit_error"],
  FAILED_PRECONDITION: [400, "invalid_request_error"],
  ABORTED: [409, "conflict_error"],
  OUT_OF_RANGE: [400, "invalid_request_error"],
  UNIMPLEMENTED: [501, "api_error"],
  INTERNAL: [500, "api_error"],
  UNAVAILABLE: [503, "api_error"],
  DATA_LOSS: [500, "api_error"],
  UNAUTHENTICATED: [401, "authentication_error"],
};

const BY_REASON: Record<string, readonly [number, string]> = {
  TOO_LARGE: [413, "request_too_large"],
  MESSAGE_TOO_LARGE: [413, "request_too_large"],
  SESSION_ENDED: [409, "conflict_error"],
  ROUTE_NOT_FOUND: [404, "not_found_error"],
  HOST_NOT_ALLOWED: [421, "permission_error"],
};

/** error_code values for which the official SDK has classes of their own. */
const ERROR_CODES: Record<string, string> = {
  ENVIRONMENT_ARCHIVED: "environment_archived",
  ENVIRONMENT_NOT_FOUND: "environment_not_found",
};

/** toRestError writes an error as the REST API does. What is not a GanglionError must have been made INTERNAL before. */
export function toRestError(error: GanglionError, requestId: string): RestError {
  const [status, type] = BY_REASON[error.reason] ?? BY_CODE[error.code];
  const violations = error.violations.map(({ field, description }) => ({ field, description }));
  const details = {
    error_code: ERROR_CODES[error.reason] ?? error.reason.toLowerCase(),
    ...(error.domain ? { part: error.domain } : {}),
    ...(violations.length > 0 ? { violations } : {}),
  };
  return {
    status,
    headers: {
      // Conflicts here are for good: trying again would only write the same thing three times. [trap 5]
      ...(status === 409 ? { "x-should-retry": "false" } : {}),
      ...(error.retryAfterMs === undefined
        ? {}
        : { "retry-after-ms": String(Math.ceil(error.retryAfterMs)) }),
    },
    body: { type: "error", error: { type, message: describe(error), details }, request_id: requestId },
  };
}

function describe({ message, violations }: GanglionError): string {
  const [first] = violations;
  // Services say what is wrong in the violations; people read the message.
  return first && !message.includes(first.field)
    ? `${message} (${first.field}: ${first.description})`
    : message;
}
