import type { Metadata } from "@grpc/grpc-js";
import type { Logger } from "../log/create-logger.ts";
import type { Principal } from "./principal.ts";

/** What is carried from a call to the calls made on its behalf. */
export interface ParentCall {
  /** Aborted by the deadline, the caller's cancellation or the server's shutdown. */
  signal: AbortSignal;
  /** When the call must be over, epoch milliseconds; Infinity = never. */
  deadlineMs: number;
  /** W3C trace context of this call's span. */
  traceparent: string;
}

/** Everything a handler knows about its call. */
export interface CallContext extends ParentCall {
  principal: Principal;
  /** What the caller sent. Read our keys through singleMetadata. */
  metadata: Metadata;
  log: Logger;
  traceId: string;
  /** "/ganglion.session.v1.SessionService/GetSession" */
  path: string;
  /** Address of the peer. */
  peer: string;
  /** Adds fields to the call's log line, for example the session id. No payloads. */
  note(fields: Record<string, string | number | boolean | bigint>): void;
}
