import type { Metrics } from "../telemetry/metrics.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ParentCall } from "./call-context.ts";
import type { EncodedMessage } from "./message-codec.ts";

/** How one call is made. */
export interface CallOptions {
  /** The call on whose behalf this one is made: its deadline, cancellation and trace go along. [B134] */
  parent?: ParentCall | undefined;
  /** Ends the call early, besides the parent's signal. */
  signal?: AbortSignal | undefined;
  /** Own time limit; the parent's remaining time counts when it is shorter. Default 30 s, none for streams. */
  timeoutMs?: number | undefined;
  metadata?: Record<string, string | Buffer> | undefined;
  /** Wait for a server until the deadline instead of failing with UNAVAILABLE. */
  waitForReady?: boolean | undefined;
}

/** How a client is made. */
export interface ClientOptions {
  tracing?: Tracing;
  metrics?: Metrics;
  /** Default of CallOptions.timeoutMs. */
  timeoutMs?: number;
  /** Ping interval while calls are open. Default 5 min, which every proxy's default policy allows. [B136] */
  keepaliveMs?: number;
  /** Image from which idempotent methods are known; those are retried after UNAVAILABLE. null = never retry. */
  image?: string | null;
  /** By name of a method its request's generated message, for requests that may be large: it is encoded with less copying. */
  largeRequests?: Readonly<Record<string, EncodedMessage>>;
}
