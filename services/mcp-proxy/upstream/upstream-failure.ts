/** How an exchange with an upstream failed. */
export type UpstreamFailureKind =
  /** Nothing was sent: the MCP server does not list the tool. */
  | "not_listed"
  /** The MCP server wants something of a person before it goes on. */
  | "asks_back"
  /** Nothing was sent: no connection, or no TLS. */
  | "unreachable"
  /** The connection broke, or the answer is not valid, after bytes were sent. */
  | "broken"
  | "malformed"
  | "redirect"
  | "unauthorized"
  | "refused"
  | "too_large"
  | "timeout"
  | "cancelled";

/** An upstream's failure without any of its text. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: UpstreamFailureKind;
  /** HTTP status; 0 when there was none. */
  readonly status: number;

  constructor(kind: UpstreamFailureKind, status = 0) {
    super(`upstream: ${kind}${status ? ` (${status})` : ""}`);
    this.kind = kind;
    this.status = status;
  }
}
