import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { ExecutionJournal } from "./execution-journal.ts";

/** A session's lease as the session service knows it. */
export type LeaseFacts = { epoch: bigint; owner: string };

/** LeaseSource asks the session service; rejects when that cannot be asked, undefined = no such session. */
export interface LeaseSource {
  getLease(sessionId: string, signal: AbortSignal): Promise<LeaseFacts | undefined>;
}

/** Who says that it drives a session. */
export type LeaseClaim = { sessionId: string; epoch: bigint; caller: string };

/**
 * LeaseGuard admits the holder of a session's lease. An epoch lower than one seen is refused from the journal alone,
 * whatever else is down; a new one is believed only when the session service confirms it, because one invented
 * epoch would lock the true holder out.
 */
export class LeaseGuard {
  readonly #journal: ExecutionJournal;
  readonly #leases: LeaseSource;
  /** Holders that were confirmed since this process started. */
  readonly #holders = new Map<string, LeaseFacts>();

  constructor(journal: ExecutionJournal, leases: LeaseSource) {
    this.#journal = journal;
    this.#leases = leases;
  }

  /** admit resolves when the claim is right; it rejects with STALE_EPOCH or LOG_UNAVAILABLE. */
  async admit(claim: LeaseClaim, signal: AbortSignal): Promise<void> {
    const seen = this.#journal.seenEpoch(claim.sessionId);
    if (claim.epoch < seen) throw staleEpoch(seen);
    const known = this.#holders.get(claim.sessionId);
    if (known?.epoch === claim.epoch) {
      if (known.owner !== claim.caller) throw staleEpoch(seen);
      return;
    }
    await this.#confirm(claim, signal);
    // Another call may have raised it while this one was asking.
    const now = this.#journal.seenEpoch(claim.sessionId);
    if (claim.epoch < now) throw staleEpoch(now);
    await this.#raise(claim);
    this.#holders.set(claim.sessionId, { epoch: claim.epoch, owner: claim.caller });
    if (this.#holders.size > MAX_HOLDERS) this.#holders.delete(this.#holders.keys().next().value!);
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
    if (lease?.epoch === claim.epoch && lease.owner === claim.caller) return;
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

const MAX_HOLDERS = 100_000;

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
