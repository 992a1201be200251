import type { Event } from "../../gen/ganglion/types/v1/event.ts";

/** What happened, before it has a place in the log. */
export interface NewEvent {
  id: string;
  body: NonNullable<Event["body"]>;
}

/** A harness's right to drive a session. */
export interface HeldLease {
  sessionId: string;
  workspaceId: string;
  epoch: bigint;
  headPosition: bigint;
}

/** How an append is guarded and traced. */
export interface AppendOptions {
  /** Append only if the log ends here. */
  expectedPosition?: bigint;
  traceparent?: string;
  signal?: AbortSignal;
}

/** The session service, as a brain needs it. */
export interface EventLog {
  /** All events after a position, in order, and no further. */
  read(sessionId: string, after: bigint, signal: AbortSignal): AsyncIterable<Event>;
  /** Events after a position, stored and then live, until the signal; the connection's faults are its own business. */
  watch(sessionId: string, after: bigint, signal: AbortSignal): AsyncIterable<Event>;
  /**
   * Appends under the lease's epoch and answers with the events as stored. Retried with the same ids while the log
   * cannot be reached; throws what cannot be retried.
   */
  append(lease: HeldLease, events: readonly NewEvent[], options: AppendOptions): Promise<Event[]>;
}
