import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { Tokens } from "../ports/leases.ts";

/**
 * The session token of one lease, in memory only. Asked for as soon as the lease is taken, beside the reading of the
 * log, so that the first request does not wait for it.
 */
export class TokenKeeper {
  readonly #tokens: Tokens;
  readonly #lease: HeldLease;
  readonly #signal: AbortSignal;
  #pending: Promise<string> | undefined;

  constructor(tokens: Tokens, lease: HeldLease, signal: AbortSignal) {
    this.#tokens = tokens;
    this.#lease = lease;
    this.#signal = signal;
  }

  /** Begins to ask; what goes wrong is reported by get(). */
  prepare(): void {
    this.get().catch(() => {});
  }

  get(): Promise<string> {
    const pending = this.#pending ?? this.#tokens.issue(this.#lease, this.#signal);
    this.#pending = pending;
    pending.catch(() => {
      if (this.#pending === pending) this.#pending = undefined;
    });
    return pending;
  }

  /** Forgets a token that was refused; true when another one may help. */
  renewAfter(error: unknown): boolean {
    const reason = GanglionError.is(error) ? error.reason : undefined;
    if (reason !== "TOKEN_INVALID" && reason !== "TOKEN_AUDIENCE") return false;
    this.forget();
    return true;
  }

  forget(): void {
    this.#pending = undefined;
  }
}
