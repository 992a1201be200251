import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { ExecutionJournal } from "./execution-journal.ts";

/** A session's lease as the session service knows it. */
export type LeaseFacts = { epoch: bigint; owner: string; isEnded: boolean };

/** LeaseSource asks the session service; rejects when that cannot be asked, undefined = no such session. */
export interface LeaseSource {
  getLease(sessionId: string, signal: AbortSignal): Promise<LeaseFacts | undefined>;
}

/** Who says that it drives a session. */
export type LeaseClaim = { sessionId: string; epoch: bigint; caller: string };

/**
 * LeaseGuard admits the holder of a session's lease, and asks the session service at each call: a brain that lost or
 * released its lease, or whose session has ended, is refused at its next call and not at its successor's first one
 * (laws L3 and L7). An epoch lower than one seen is refused from the journal alone, whatever else is down.
 */
export class LeaseGuard {
  readonly #journal: ExecutionJournal;
  readonly #leases: LeaseSource;

  constructor(journal: ExecutionJournal, leases: LeaseSource) {
    this.#journal = journal;
    this.#leases = leases;
  }

  /** admit resolves when the claim is right; it rejects with STALE_EPOCH or LOG_UNAVAILABLE. */
  async admit(claim: LeaseClaim, signal: AbortSignal): Promise<void> {
    const seen = this.#journal.seenEpoch(claim.sessionId);
    if (claim.epoch < seen) throw staleEpoch(seen);
    await this.#confirm(claim, signal);
    // Another call may have raised it while this one was asking.
    const now = this.#journal.seenEpoch(claim.sessionId);
    if (claim.epoch < now) throw staleEpoch(now);
    if (claim.epoch > now) await this.#raise(claim);
  }

  async #confirm(claim: LeaseClaim, signal: AbortSignal): Promise<void> {
    let lease: LeaseFacts | undefined;
    try {
      lease = await this.#leases.getLease(claim.sessionId, signal);
    } catch (cause) {
      throw new GanglionError({
        code: "UNAVAILABLE",
        reason: "LOG_UNAVAILABLE",
        message: "the lease could not be confirmed at the session service",
        retryAfterMs: 500,
        cause,
      });
    }
    if (lease?.epoch === claim.epoch && lease.owner === claim.caller && !lease.isEnded) return;
    throw staleEpoch(
      lease && lease.epoch > claim.epoch ? lease.epoch : this.#journal.seenEpoch(claim.sessionId),
    );
  }

  async #raise(claim: LeaseClaim): Promise<void> {
    try {
      await this.#journal.raiseEpoch(claim.sessionId, claim.epoch);
    } catch (cause) {
      throw journalUnavailable(cause);
    }
  }
}

function staleEpoch(current: bigint): GanglionError {
  return new GanglionError({
    code: "FAILED_PRECONDITION",
    reason: "STALE_EPOCH",
    message: "the caller does not hold the session's lease",
    metadata: { epoch: String(current) },
  });
}

/** journalUnavailable is the error of a call that was not run because its record could not be written. */
export function journalUnavailable(cause: unknown): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "JOURNAL_UNAVAILABLE",
    message: "the journal cannot be written",
    retryAfterMs: 1_000,
    cause,
  });
}
