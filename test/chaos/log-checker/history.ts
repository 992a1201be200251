/** An event as somebody saw it. */
export interface Seen {
  readonly position: number;
  readonly id: string;
}

/** What an attempt to append came to; ambiguous = nobody said whether it was done. */
export type Outcome =
  | { readonly kind: "acknowledged"; readonly stored: readonly (Seen & { readonly isDuplicate: boolean })[] }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "ambiguous" };

/** One attempt to append. Repeated attempts name the same ids. */
export interface Attempt {
  readonly ids: readonly string[];
  /** The position that the newest event was to have. */
  readonly expected?: number;
  /** The epoch of the lease it was made under. */
  readonly epoch?: number;
  readonly begun: number;
  readonly ended: number;
  readonly outcome: Outcome;
}

/** A lease that somebody was given. */
export interface Taken {
  readonly epoch: number;
  readonly ended: number;
}

/** A slice that somebody read: exclusive bounds, 0 = open above. */
export interface Read {
  readonly after: number;
  readonly before: number;
  readonly isDescending: boolean;
  readonly events: readonly Seen[];
  readonly head: number;
  readonly hasMore: boolean;
  readonly begun: number;
}

/** What one watcher was sent in all its connections; each resumed at the position of the last message. */
export interface Watched {
  readonly name: string;
  readonly after: number;
  readonly events: readonly Seen[];
}

/** An event of the log at the end. */
export interface Stored extends Seen {
  readonly epoch: number;
  /** The log wrote it by itself: a session that was made, a lease that was taken. */
  readonly isOwn: boolean;
}

/** Everything that was done to one session, and its log at the end. */
export interface History {
  readonly attempts: readonly Attempt[];
  readonly taken: readonly Taken[];
  readonly reads: readonly Read[];
  readonly watched: readonly Watched[];
  readonly log: readonly Stored[];
}

/** Something that must never happen. */
export interface Fault {
  readonly kind:
    | "gap"
    | "duplicated"
    | "lost"
    | "phantom"
    | "torn"
    | "moved"
    | "reordered"
    | "stale read"
    | "wrong slice"
    | "unjustified append"
    | "unjustified refusal"
    | "fence broken";
  readonly detail: string;
}
