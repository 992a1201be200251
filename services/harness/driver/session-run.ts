import type { Logger } from "../../common/log/create-logger.ts";
import { newTraceparent } from "../../common/telemetry/trace-context.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { Previews } from "../ports/leases.ts";
import { CacheShare, type CountInput } from "./cache-share.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { DriveContext, DrivePorts, Patience } from "./drive-context.ts";
import { type DriveProgress, driveSession } from "./drive-session.ts";
import { HandKeeper } from "./hand-keeper.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { PayloadReader } from "./payload-reader.ts";
import { SessionLog } from "./session-log.ts";
import { TokenKeeper } from "./token-keeper.ts";

/** What a run needs of its process. */
export interface RunPorts extends DrivePorts {
  openPreviews: (lease: HeldLease) => Previews;
  /** Told about each answer's input tokens. */
  countInput?: CountInput;
}

/** How a run ended. `settledPosition` only when everything in the log is done. */
export type RunEnd =
  | { reason: "settled"; settledPosition: bigint }
  | { reason: "stopped" | "over" | "failed" | "lost" };

/** One leased session being driven by this process. */
export class SessionRun {
  readonly lease: HeldLease;
  readonly startedAt = new Date();
  readonly progress: DriveProgress = { action: "load", position: 0n };
  readonly #abort = new AbortController();
  readonly #stop = new AbortController();
  readonly #ports: RunPorts;
  readonly #logger: Logger;
  readonly #patience: Patience;
  readonly #lingerMs: number;

  constructor(
    lease: HeldLease,
    ports: RunPorts,
    options: { logger: Logger; patience: Patience; lingerMs: number },
  ) {
    this.lease = lease;
    this.#ports = ports;
    this.#logger = options.logger.child({ session_id: lease.sessionId, epoch: String(lease.epoch) });
    this.#patience = options.patience;
    this.#lingerMs = options.lingerMs;
  }

  /** True while the session waits for input and is kept only so that the next turn begins sooner. */
  get isLingering(): boolean {
    return this.progress.action === "wait";
  }

  /** Lets go at the next safe point. */
  stop(): void {
    this.#stop.abort();
  }

  /** Ends it at once; nothing more is written. */
  abort(): void {
    this.#abort.abort(new LeaseLost("the lease could not be kept"));
    this.#stop.abort();
  }

  /** Drives the session until there is a reason not to. Never rejects. */
  async run(): Promise<RunEnd> {
    const ctx = this.#context();
    try {
      // Beside each other: neither may make the first request wait for the other.
      ctx.token.prepare();
      ctx.checkpoints.startFrom(await ctx.log.load(), ctx.log.state);
      this.progress.position = ctx.log.state.position;
      const lost = ctx.log.follow().then(
        () => new Promise<never>(() => {}),
        (error: unknown) => {
          // The step that is under way must not write any more.
          if (!this.#abort.signal.aborted) this.#abort.abort(error);
          throw error;
        },
      );
      lost.catch(() => {});
      const driven = driveSession(ctx, this.progress, (position) => this.#waitForInput(ctx.log, position));
      driven.catch(() => {});
      const end = await Promise.race([driven, lost, this.#aborted()]);
      return end.reason === "settled" ? { reason: "settled", settledPosition: end.position } : end;
    } catch (error) {
      if (saysLeaseIsLost(error) || saysLeaseIsLost(this.#abort.signal.reason)) {
        this.#logger.info("the session is not ours any more");
        return { reason: "lost" };
      }
      this.#logger.error({ err: error }, "driving the session failed");
      return { reason: "failed" };
    } finally {
      this.#abort.abort(new LeaseLost("the run is over"));
      ctx.previews.close();
      const share = ctx.cacheShare.value;
      if (share !== undefined)
        this.#logger.info({ cache_hit_share: Number(share.toFixed(3)) }, "the run is over");
    }
  }

  /** Rejects when the run is aborted: a part that does not react to its signal must not keep it. */
  #aborted(): Promise<never> {
    const { signal } = this.#abort;
    const aborted = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => {});
    return aborted;
  }

  #context(): DriveContext {
    const { signal } = this.#abort;
    const traceparent = newTraceparent();
    const log = new SessionLog(this.#ports.log, this.lease, signal);
    return {
      log,
      ports: this.#ports,
      token: new TokenKeeper(this.#ports.tokens, this.lease, signal),
      hand: new HandKeeper(this.#ports.hands, log, traceparent, this.#patience.callMs),
      payloads: new PayloadReader(this.#ports.log),
      checkpoints: new Checkpoints(this.#ports.log, this.lease, this.#logger, signal),
      cacheShare: new CacheShare(this.#ports.countInput ?? (() => {})),
      previews: this.#ports.openPreviews(this.lease),
      logger: this.#logger,
      traceparent,
      ownCalls: new Set(),
      attempted: new Set(),
      changedServers: new Set(),
      closedBlindly: new Set(),
      signal,
      stop: this.#stop.signal,
      patience: this.#patience,
      random: Math.random,
    };
  }

  #waitForInput(log: SessionLog, position: bigint): Promise<"changed" | "linger_over"> {
    return new Promise((resolve) => {
      const done = (answer: "changed" | "linger_over"): void => {
        clearTimeout(timer);
        dispose();
        this.#stop.signal.removeEventListener("abort", onStop);
        resolve(answer);
      };
      const onStop = (): void => done("linger_over");
      const timer = setTimeout(() => done("linger_over"), this.#lingerMs);
      const dispose = log.onChange(() => {
        if (log.state.position > position) done("changed");
      });
      this.#stop.signal.addEventListener("abort", onStop);
      if (this.#stop.signal.aborted) onStop();
      else if (log.state.position > position) done("changed");
    });
  }
}
