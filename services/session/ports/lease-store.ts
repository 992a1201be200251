import type { Lease } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";

/** A harness instance as its certificate and its heartbeats name it. */
export interface Holder {
  readonly owner: string;
  readonly bootId: string;
}

/** A sign of life. */
export interface Heartbeat extends Holder {
  readonly activeSessions: number;
  readonly isDraining: boolean;
}

/** What an instance asks for. */
export interface LeaseWish {
  /** null = any session that nobody alive drives. */
  readonly sessionId: string | null;
  readonly requestId: string | null;
  /** Called with the session that is about to be taken: what is wanted of it can be read meanwhile. */
  readonly onFound?: (sessionId: string) => void;
}

/** A lease that was given. */
export interface Given {
  readonly lease: Lease;
  /** The event that says so; absent when the lease was given before. */
  readonly acquired?: Event | undefined;
}

/** Keeps leases and heartbeats, by the database's clock alone. */
export interface LeaseStore {
  /** Records a sign of life; gives the sessions that another run of the instance held and that are free now. */
  heartbeat(heartbeat: Heartbeat, signal?: AbortSignal): Promise<string[]>;
  /**
   * Takes one session; the same request again gets what it got. Otherwise the named one or any that nobody alive drives;
   * undefined when there is none.
   */
  acquire(holder: Holder, wish: LeaseWish, signal?: AbortSignal): Promise<Given | undefined>;
  /** Gives a lease back; undefined when the session does not exist, else whether it can be leased now. */
  release(
    owner: string,
    sessionId: string,
    epoch: bigint,
    settledPosition: bigint | null,
    signal?: AbortSignal,
  ): Promise<{ isRunnable: boolean } | undefined>;
  /** The lease as it is. */
  get(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<Lease | undefined>;
  /** Number of sessions that can be leased now, capped. */
  countRunnable(cap: number, signal?: AbortSignal): Promise<number>;
}
