import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type { Append, Status } from "../../../../services/session/domain/append.ts";
import { decodeStoredEvent } from "../../../../services/session/store/event-codec.ts";
import type { Random } from "../../../kit/random.ts";
import { currentProcess, type VirtualTime } from "../core/virtual-time.ts";

/** A session's row and its log. */
export interface SessionRow {
  readonly sessionId: string;
  readonly workspaceId: string;
  status: Status;
  runnable: boolean;
  runnableAt: number;
  owner: string | null;
  ownerBoot: string | null;
  leaseRequest: string | null;
  epoch: bigint;
  readonly events: StoredRow[];
  readonly positions: Map<string, number>;
}

/** One stored event, as it was written. */
export interface StoredRow {
  readonly row: Record<string, unknown>;
  readonly digest: Uint8Array;
  /** Who held the lease when it was written. */
  readonly ownerThen: string | null;
  readonly actor: Append["actor"];
}

/** A lease that was given. */
export interface Take {
  sessionId: string;
  /** True when another instance, or another boot of it, held the session and was not given up on. */
  isFromLiving: boolean;
  taker: string;
}

/** How strict the store is; a mutation of the simulator turns a rule off to see that the checks notice. */
export interface StoreRules {
  checksEpoch: boolean;
  checksDuplicates: boolean;
  checksExpectedPosition: boolean;
  /** False: acknowledges now and then what it does not keep. */
  isDurable: boolean;
  /** False: anybody may take what a living brain holds. */
  respectsLeases: boolean;
}

/** The database of the simulated mesh. It outlives every process; each access is one atomic step. */
export class SimDatabase {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly rules: StoreRules = {
    checksEpoch: true,
    checksDuplicates: true,
    checksExpectedPosition: true,
    isDurable: true,
    respectsLeases: true,
  };
  readonly sessions = new Map<string, SessionRow>();
  /** Heartbeats by instance. */
  readonly beats = new Map<string, { bootId: string; at: number }>();
  readonly fences = new Map<string, { lowestEpoch: bigint; ended: boolean }>();
  /** What the store has confirmed. */
  readonly confirmed: { sessionId: string; eventId: string; position: bigint }[] = [];
  /** Who took which session from whom, and how long that one had been silent. */
  readonly takes: Take[] = [];
  /** Until when nobody gets an answer. */
  downUntil = 0;
  /** Replicas of the session service that listen for each other's hints. */
  readonly hints = new Set<(sessionId: string, isRunnable: boolean) => void>();
  /** Called when a fence rises, as its notification would. */
  onFence: ((sessionId: string) => void) | undefined;
  /** Called after each append, with what was written. */
  readonly listeners: ((session: SessionRow, from: number) => void)[] = [];

  constructor(time: VirtualTime, random: Random) {
    this.time = time;
    this.random = random;
  }

  /** One round trip of whoever calls; what follows happens at one moment. */
  async step(): Promise<void> {
    const process = currentProcess.getStore();
    if (!process) throw new Error("only processes use the database");
    const ms = this.random.chance(0.02) ? this.random.between(2, 60) : this.random.between(0.1, 0.6);
    await new Promise<void>((resolve) => this.time.at(this.time.now + ms, () => process.deliver(resolve)));
    if (this.time.now < this.downUntil) {
      throw new GanglionError({
        code: "UNAVAILABLE",
        reason: "DATABASE_UNAVAILABLE",
        message: "the database cannot be reached",
        retryAfterMs: 500,
      });
    }
  }

  /** Raises a session's fence, in the step of its cause. */
  raiseFence(sessionId: string, lowestEpoch: bigint, ended: boolean): void {
    const before = this.fences.get(sessionId) ?? { lowestEpoch: 0n, ended: false };
    this.fences.set(sessionId, {
      lowestEpoch: lowestEpoch > before.lowestEpoch ? lowestEpoch : before.lowestEpoch,
      ended: before.ended || ended,
    });
    this.onFence?.(sessionId);
  }

  /** The log of a session as readers get it. */
  eventsOf(sessionId: string, after = 0): Event[] {
    const rows = this.sessions.get(sessionId)?.events.slice(after) ?? [];
    return rows.map(({ row }) => decodeStoredEvent(row as never));
  }
}
