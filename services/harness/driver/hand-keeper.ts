import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { RETRY } from "../domain/proto-values.ts";
import { repositoryFailure } from "../domain/repository-failures.ts";
import type { KnownHand } from "../domain/session-state.ts";
import { sha256Hex } from "../domain/sha256.ts";
import type { Hands } from "../ports/hands.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { newEvent, sessionError } from "./new-events.ts";
import { orStop, Stopped } from "./or-stop.ts";
import { pause } from "./pause.ts";
import type { SessionLog } from "./session-log.ts";

// Making a hand again can help after these; after anything else it cannot.
const PASSING = new Set(["HAND_LIMIT", "PROVISION_FAILED", "UNREACHABLE", "DRAINING", "LOG_UNAVAILABLE"]);

/** The session's hand: made on the first call that needs one, and anew after it was lost. */
export class HandKeeper {
  readonly #hands: Hands;
  readonly #log: SessionLog;
  readonly #traceparent: string;
  readonly #patienceMs: number;
  #pending: Promise<KnownHand> | undefined;
  readonly #lost = new Set<string>();

  constructor(hands: Hands, log: SessionLog, traceparent: string, patienceMs: number) {
    this.#hands = hands;
    this.#log = log;
    this.#traceparent = traceparent;
    this.#patienceMs = patienceMs;
  }

  /** The hand that serves now; parallel calls that find none wait for the same one. */
  async ensure(signal: AbortSignal): Promise<KnownHand> {
    const { hand } = this.#log.state;
    if (hand && !this.#lost.has(hand.id)) return hand;
    this.#pending ??= orStop(this.#provision(signal), signal).finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  /** Writes down, once, that a hand is gone. */
  async markLost(handId: string, reason: string): Promise<void> {
    if (this.#lost.has(handId) || this.#log.state.hand?.id !== handId) return;
    this.#lost.add(handId);
    await this.#log.append(
      [newEvent({ $case: "ganglionHandLost", value: { handId, reason } })],
      this.#traceparent,
    );
  }

  async #provision(signal: AbortSignal): Promise<KnownHand> {
    const { lease, state } = this.#log;
    const startedAt = performance.now();
    const request = {
      sessionId: lease.sessionId,
      epoch: lease.epoch,
      // The same after a takeover: a brain that died before it wrote the hand down does not leave it behind.
      requestId: asUuid(sha256Hex(`${lease.sessionId}/hand/${state.handsProvisioned + 1}`)),
      repositories: state.repositories,
      signal,
      traceparent: this.#traceparent,
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const { repositoryFailures, ...hand } = await this.#hands.provision(request);
        // Nobody waits for it any more: whoever does next gets the same one, under the same request id.
        if (signal.aborted) throw new Stopped("stopped");
        const durationMs = BigInt(Math.round(performance.now() - startedAt));
        const missing = repositoryFailures.map((failure) =>
          sessionError(repositoryFailure(failure), RETRY.RETRYING, { repositoryUrl: failure.url }),
        );
        await this.#log.append(
          [newEvent({ $case: "ganglionHandProvisioned", value: { ...hand, durationMs } }), ...missing],
          this.#traceparent,
        );
        return { id: hand.handId, sandboxAddr: hand.sandboxAddr };
      } catch (error) {
        if (saysLeaseIsLost(error)) throw new LeaseLost("the sandbox refused the epoch", { cause: error });
        const isOver = performance.now() - startedAt > this.#patienceMs;
        const mayHelp = GanglionError.is(error) && PASSING.has(error.reason);
        if (signal.aborted || isOver || !mayHelp) throw error;
        await pause(Math.min(250 * 2 ** attempt, 3000), signal);
      }
    }
  }
}

function asUuid(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    "-",
  );
}
