import type { HeldLease } from "./event-log.ts";
import type { McpProgress } from "./mcp-servers.ts";

/** What a harness is to the session service. */
export interface Leases {
  /** Keeps this instance alive; answers with the time to live. */
  heartbeat(state: { activeSessions: number; isDraining: boolean }): Promise<number>;
  /** Any runnable session, or the one named; undefined = nothing is runnable. */
  acquire(sessionId?: string): Promise<HeldLease | undefined>;
  /** `settledPosition`: everything up to there is done and the session may wait for input. */
  release(lease: HeldLease, settledPosition?: bigint): Promise<void>;
  /** Hints that there may be something to acquire; ends with the signal only. */
  runnable(signal: AbortSignal): AsyncIterable<number>;
}

/** Issues session tokens. */
export interface Tokens {
  issue(lease: HeldLease, signal: AbortSignal): Promise<string>;
}

/** Shows what is being generated, and how far tools are, to whoever watches. Never waits and never fails. */
export interface Previews {
  start(eventId: string, eventType: string): void;
  text(eventId: string, text: string): void;
  discard(eventId: string): void;
  /** How far the call with that event is. */
  progress(eventId: string, progress: McpProgress): void;
  close(): void;
}
