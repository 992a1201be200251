/** TokenEntry is a token as stored; the token itself is kept only as a keyed hash, which is the entry's key. */
export interface TokenEntry {
  readonly hash: string;
  readonly accessor: string;
  /** Hash of the parent; absent for an orphan. */
  readonly parent?: string;
  readonly policies: readonly string[];
  readonly path: string;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly displayName: string;
  readonly entityId: string;
  /** Name of the token role or nothing. */
  readonly role?: string;
  readonly isRenewable: boolean;
  /** Uses left; 0 is without limit, -1 is the token of a request that was its last use. */
  readonly usesLeft: number;
  readonly createdAt: number;
  readonly renewedAt?: number;
  /** Life asked for at creation. 0 with no `expiresAt` is a token that does not expire. */
  readonly ttlMs: number;
  readonly expiresAt: number | null;
  readonly periodMs: number;
  /** What the request asked for, which lookups show. */
  readonly explicitMaxTtlMs: number;
  /** The bound that renewals may not cross, from the request, the role or the login. */
  readonly lastMomentAt: number | null;
  /** Set on wrapping tokens only. */
  readonly wrapped?: WrappedAnswer;
}

/** WrappedAnswer is an answer that waits for its one reader. */
export interface WrappedAnswer {
  readonly creationPath: string;
  readonly creationTime: string;
  readonly ttlMs: number;
  readonly answer: Readonly<Record<string, unknown>>;
}
