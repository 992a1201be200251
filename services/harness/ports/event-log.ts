import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
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
  /** Where the reading of the log begins, when it came with the lease; gone once it was read. */
  start?: LogStart | undefined;
}

/** The beginning of what the holder of a lease has to read. */
export interface LogStart {
  /** The newest fold that is kept; undefined when there is none. */
  checkpoint: StoredCheckpoint | undefined;
  /** Events behind it, or from the first one on, none left out. */
  events: readonly Event[];
  /** The log went on behind them when the lease was given. */
  hasMore: boolean;
}

/** How an append is guarded and traced. */
export interface AppendOptions {
  /** Append only if the log ends here. */
  expectedPosition?: bigint;
  traceparent?: string;
  signal?: AbortSignal;
}

/** Part of a log. */
export interface Slice {
  afterPosition: bigint;
  /** 0 = up to the end. */
  beforePosition: bigint;
  /** Only these; empty = all. */
  types: readonly string[];
  isNewestFirst: boolean;
  limit: number;
  /** The events around this one instead; empty = none. */
  aroundEventId: string;
}

/** A fold as it is kept beside the log. */
export interface StoredCheckpoint {
  position: bigint;
  data: Uint8Array;
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
  /** One page of a part of the log. */
  slice(sessionId: string, slice: Slice, signal: AbortSignal): Promise<{ events: Event[]; hasMore: boolean }>;
  /** Content that is stored beside the log, verified against the reference's digest. */
  readPayload(sessionId: string, ref: PayloadRef, signal: AbortSignal): Promise<Uint8Array>;
  /** Stores content beside the log and answers with its reference; the same content again is the same payload. */
  writePayload(
    lease: HeldLease,
    content: { bytes: Uint8Array; contentType: string; excerpt: string },
    signal: AbortSignal,
  ): Promise<PayloadRef>;
  /** The newest fold that is kept in a format; undefined when there is none. */
  readCheckpoint(
    sessionId: string,
    format: string,
    signal: AbortSignal,
  ): Promise<StoredCheckpoint | undefined>;
  /** Keeps a fold. */
  writeCheckpoint(
    lease: HeldLease,
    format: string,
    checkpoint: StoredCheckpoint,
    signal: AbortSignal,
  ): Promise<void>;
}
