const TYPES: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** errorTypeOf names the error type that goes with an HTTP status. */
export function errorTypeOf(status: number): string {
  return TYPES[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/** errorBody is the envelope of every error, also of one inside a stream. */
export function errorBody(type: string, message: string, requestId: string) {
  return { type: "error", error: { type, message }, request_id: requestId };
}
