/** A fold of a log up to a position. */
export interface Checkpoint {
  readonly position: bigint;
  readonly data: Buffer;
}

/** A fold that the holder of a lease wants kept. */
export interface NewCheckpoint extends Checkpoint {
  readonly sessionId: string;
  readonly format: string;
  readonly lease: { readonly owner: string; readonly epoch: bigint };
}

/** Keeps one fold for each session and format. */
export interface CheckpointStore {
  /** Keeps it unless a later one is there; throws the reason when it is refused. */
  put(checkpoint: NewCheckpoint, signal?: AbortSignal): Promise<void>;
  /** What is kept; "none" when nothing is, undefined when there is no such session. */
  get(
    sessionId: string,
    scope: string | null,
    format: string,
    signal?: AbortSignal,
  ): Promise<Checkpoint | "none" | undefined>;
}
