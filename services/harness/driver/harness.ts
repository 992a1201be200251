import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { Leases } from "../ports/leases.ts";
import type { Patience } from "./drive-context.ts";
import { Hint } from "./hint.ts";
import { pause } from "./pause.ts";
import { type RunPorts, SessionRun } from "./session-run.ts";

/** What a harness is made of. */
export interface HarnessOptions {
  leases: Leases;
  ports: RunPorts;
  logger: Logger;
  patience: Patience;
  /** Sessions driven at once. */
  maxSessions: number;
  /** How long a session without work is kept. */
  lingerMs: number;
  /** Longest time between two tries to find work without a hint. */
  pollMs: number;
  /** How long tools may go on after stop() before they are given up. */
  stopGraceMs: number;
}

/** Codes with which nobody has answered. */
const SILENT = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"]);

/** One harness: finds sessions to drive, keeps its leases alive, and lets go of them when it must. */
export class Harness {
  readonly #options: HarnessOptions;
  readonly #runs = new Map<string, { run: SessionRun; ended: Promise<void> }>();
  readonly #closing = new AbortController();
  readonly #failures = new Map<string, number>();
  #isDraining = false;
  #aliveUntil = 0;
  #beat: (() => void) | undefined;

  constructor(options: HarnessOptions) {
    this.#options = options;
  }

  /** Begins to work; resolves when the first heartbeat was answered. */
  async start(): Promise<void> {
    const beating = new Promise<void>((resolve) => {
      this.#beat = resolve;
    });
    void this.#keepAlive();
    void this.#findWork();
    await beating;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** True while the last heartbeat still counts. */
  get isAlive(): boolean {
    return performance.now() < this.#aliveUntil;
  }

  /** What is driven now, oldest first. */
  get active(): SessionRun[] {
    return [...this.#runs.values()].map(({ run }) => run);
  }

  /** Takes one session, now; the one already held is left as it is. */
  async wake(sessionId: string): Promise<bigint> {
    const held = this.#runs.get(sessionId);
    if (held) return held.run.lease.epoch;
    if (this.#isDraining) {
      throw new GanglionError({
        code: "UNAVAILABLE",
        reason: "DRAINING",
        message: "this harness takes no new sessions",
      });
    }
    const lease = await this.#options.leases.acquire(sessionId);
    if (!lease) throw new Error("a named session was neither given nor refused");
    this.#drive(lease);
    return lease.epoch;
  }

  /** Takes nothing new and lets go of everything at the next safe point; answers with how many were held. */
  async drain(): Promise<number> {
    this.#isDraining = true;
    const held = [...this.#runs.values()];
    for (const { run } of held) run.stop();
    const grace = setTimeout(() => {
      for (const { run } of held) run.abort();
    }, this.#options.stopGraceMs);
    await Promise.all(held.map(({ ended }) => ended));
    clearTimeout(grace);
    return held.length;
  }

  /** Drains and ends the background work. */
  async close(): Promise<void> {
    await this.drain();
    this.#closing.abort();
  }

  #drive(lease: HeldLease): void {
    const { ports, logger, patience, lingerMs } = this.#options;
    // Given again with a new epoch: the run under the old one is over, whatever it thinks.
    this.#runs.get(lease.sessionId)?.run.abort();
    const run = new SessionRun(lease, ports, { logger, patience, lingerMs });
    const ended = (async () => {
      const end = await run.run();
      if (this.#runs.get(lease.sessionId)?.run === run) this.#runs.delete(lease.sessionId);
      // A failed run leaves its session runnable: it is held a while, longer each time, before anybody tries again.
      if (end.reason === "failed") await pause(this.#failureDelay(lease.sessionId), this.#closing.signal);
      else this.#failures.delete(lease.sessionId);
      // Also when it is lost: if it is not, nobody else would ever give it back.
      const settled = end.reason === "settled" ? end.settledPosition : undefined;
      await this.#giveBack(lease, settled);
    })();
    this.#runs.set(lease.sessionId, { run, ended });
  }

  /**
   * Gives a lease back, however long the log is away: this instance goes on beating, so a session that it holds and does
   * not drive would be nobody's for ever. One that stops need not wait: its silence gives everything back. [B135]
   */
  async #giveBack(lease: HeldLease, settled: bigint | undefined): Promise<void> {
    const { leases, logger } = this.#options;
    for (let failures = 0; ; failures++) {
      try {
        return await leases.release(lease, settled);
      } catch (error) {
        logger.warn({ err: error, session_id: lease.sessionId }, "a lease could not be given back");
        const isSilent = GanglionError.is(error) && SILENT.has(error.code);
        if (!isSilent || this.#isDraining || this.#closing.signal.aborted) return;
        await pause(Math.min(1000, 100 * 2 ** failures), this.#closing.signal);
      }
    }
  }

  #failureDelay(sessionId: string): number {
    const failures = (this.#failures.get(sessionId) ?? 0) + 1;
    this.#failures.set(sessionId, failures);
    return Math.min(60_000, 500 * 2 ** Math.min(failures, 10));
  }

  async #keepAlive(): Promise<void> {
    const { leases, logger } = this.#options;
    let ttlMs = 1000;
    while (!this.#closing.signal.aborted) {
      const sentAt = performance.now();
      try {
        ttlMs = await leases.heartbeat({
          activeSessions: this.#runs.size,
          isDraining: this.#isDraining,
        });
        // Counted from before the call: the other clock began no later.
        this.#aliveUntil = sentAt + ttlMs;
        this.#beat?.();
        await pause(ttlMs / 4, this.#closing.signal);
      } catch (error) {
        logger.warn({ err: error }, "heartbeat failed");
        await pause(Math.min(ttlMs / 8, 500), this.#closing.signal);
      }
      // Others may have taken what this instance held: it must not act as if they had not.
      if (!this.isAlive) for (const { run } of this.#runs.values()) run.abort();
    }
  }

  async #findWork(): Promise<void> {
    const hint = new Hint();
    void this.#followHints(hint);
    const { pollMs } = this.#options;
    while (!this.#closing.signal.aborted) {
      const count = await hint.wait(pollMs / 2 + (pollMs / 2) * Math.random(), this.#closing.signal);
      await this.#take(count);
    }
  }

  /** Takes up to that many sessions: asking for one more than there are costs the ones that just began. */
  async #take(count: number): Promise<void> {
    for (let taken = 0; taken < count; taken++) {
      if (this.#isDraining || !this.isAlive || this.#closing.signal.aborted) return;
      if (this.#runs.size >= this.#options.maxSessions) {
        // Room comes when a session that only waits is given back.
        this.active.find((run) => run.isLingering)?.stop();
        return;
      }
      try {
        const lease = await this.#options.leases.acquire();
        if (!lease) return;
        this.#drive(lease);
      } catch (error) {
        this.#options.logger.warn({ err: error }, "no session could be leased");
        return;
      }
    }
  }

  async #followHints(hint: Hint): Promise<void> {
    for await (const count of this.#options.leases.runnable(this.#closing.signal)) {
      if (count > 0) hint.give(count);
    }
  }
}
