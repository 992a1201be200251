import type { ExecutionResult } from "./execution-result.ts";

/** What is known of a call that was started here. */
export type JournalEntry = {
  sessionId: string;
  key: string;
  handId: string;
  /** Digest of tool name and input: the same key must mean the same call. */
  digest: string;
  startedAt: number;
  /** True once a result was recorded; false = started, and no result. */
  isFinished: boolean;
};

/** A hand that was made here, alive or not. */
export type RecordedHand = { handId: string; sessionId: string; createdAt: number };

/**
 * ExecutionJournal is the durable memory of what was started and what came of it (law L4). It outlives hands and the
 * service. Every promise resolves when the record is on disk.
 */
export interface ExecutionJournal {
  /** Highest epoch seen for a session; 0 when none was. */
  seenEpoch(sessionId: string): bigint;
  raiseEpoch(sessionId: string, epoch: bigint): Promise<void>;
  recordHand(hand: RecordedHand): Promise<void>;
  recordedHands(): RecordedHand[];
  find(sessionId: string, key: string): JournalEntry | undefined;
  start(entry: Omit<JournalEntry, "isFinished">): Promise<void>;
  finish(sessionId: string, key: string, result: ExecutionResult): Promise<void>;
  /**
   * Forgets what finished calls came to, because the log holds it; that they were made stays known. Not durable by
   * itself: after a crash they may be there again.
   */
  forget(sessionId: string, keys: readonly string[]): void;
  /** The recorded result; undefined when it was forgotten, or dropped because of its age. */
  result(sessionId: string, key: string): Promise<ExecutionResult | undefined>;
}
