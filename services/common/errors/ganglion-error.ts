/** The gRPC status codes by name, without OK. Names, so that domain code needs no transport library. */
export const CODES = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** Name of a gRPC status code. */
export type Code = keyof typeof CODES;

/** One field of a request that broke a rule; `field` is its proto name (dotted and indexed when nested). */
export interface Violation {
  field: string;
  description: string;
}

/** What a GanglionError is made of. */
export interface GanglionErrorInit {
  code: Code;
  /** Stable UPPER_SNAKE reason, listed in the error_reason.proto of the service that raises it. */
  reason: string;
  /** For people; English, at most 200 characters go on the wire; no secrets, no upstream text. */
  message: string;
  /** Facts a program may act on; strings only, no secrets. */
  metadata?: Record<string, string>;
  /** How long to wait before trying again. */
  retryAfterMs?: number;
  /** Fields at fault; INVALID_ARGUMENT only. */
  violations?: Violation[];
  /** "ganglion.<service>" when the error was raised by another part; empty = the part that answers. */
  domain?: string;
  /** Stays in the process: it is logged, never sent. */
  cause?: unknown;
}

/**
 * The one error class of the mesh. Anything else that is thrown reaches a caller as
 * INTERNAL "internal error" with a trace id and nothing more.
 */
export class GanglionError extends Error {
  override readonly name = "GanglionError";
  readonly code: Code;
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  readonly violations: readonly Violation[];
  readonly domain: string | undefined;

  constructor(init: GanglionErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code;
    this.reason = init.reason;
    this.metadata = init.metadata ?? {};
    this.retryAfterMs = init.retryAfterMs;
    this.violations = init.violations ?? [];
    this.domain = init.domain;
  }

  /** True when `error` is a GanglionError, with that reason when one is given. */
  static is(error: unknown, reason?: string): error is GanglionError {
    return error instanceof GanglionError && (reason === undefined || error.reason === reason);
  }
}
