/** Between which two a pause grows. */
export interface DelayBounds {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** What a provider is spared with. */
const PROVIDER: DelayBounds = { firstMs: 500, mostMs: 30_000 };
/** Longer than any provider asks in earnest; a brain must not sleep for days because of one header. */
const MOST_ASKED_MS = 3_600_000;

/**
 * How long to wait before the next attempt: grows with the attempts, differs between brains, and is never shorter than
 * what the other end asked for (B018, B020). `random` is from 0 to 1.
 */
export function retryDelay(
  attempt: number,
  askedMs: number | undefined,
  random: number,
  { firstMs, mostMs }: DelayBounds = PROVIDER,
): number {
  const most = Math.min(mostMs, firstMs * 2 ** Math.min(attempt - 1, 16));
  const own = most / 2 + (most / 2) * random;
  const asked = Math.min(askedMs ?? 0, MOST_ASKED_MS);
  // Jitter on top of what was asked, so that all who were told the same do not come back at once.
  return Math.round(asked > 0 ? Math.max(own, asked + 1000 * random) : own);
}
