import type { GanglionError } from "../errors/ganglion-error.ts";
import type { Logger } from "../log/create-logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { PrincipalResolver } from "./principal.ts";

/** A call in progress, as the server that ends it sees it. */
export interface EndableCall {
  readonly isStream: boolean;
  abort(reason: GanglionError): void;
}

/** What all calls of a server share. */
export interface ServerState {
  service: string;
  log: Logger;
  /** For the line of each call, whose fields are ours: it skips the search for what to redact. */
  callLog: Logger;
  metrics: Metrics;
  tracing: Tracing;
  resolvePrincipal: PrincipalResolver;
  /** Deadline of unary calls whose caller and contract name none. */
  defaultDeadlineMs: number;
  /** How long a reader may take nothing before its stream is ended. */
  slowConsumerMs: number;
  active: Set<EndableCall>;
  draining: boolean;
}
