import type { Lease } from "../../gen/ganglion/session/v1/session_service.ts";

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

/** Keeps leases and heartbeats, by the database's clock alone. */
export interface LeaseStore {
  /** Records a sign of life; gives the sessions that another run of the instance held and that are free now. */
  heartbeat(heartbeat: Heartbeat, signal?: AbortSignal): Promise<string[]>;
  /** Takes one session; the same request again gets what it got. Otherwise the named one or any that nobody alive drives; undefined when there is none. */
  acquire(
    holder: Holder,
    sessionId: string | null,
    requestId: string | null,
    signal?: AbortSignal,
  ): Promise<Lease | undefined>;
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
