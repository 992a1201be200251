/** How one call ended: it was served, it was let in and then cut, or it was refused, and why. */
export type CallEnd = "served" | "cut" | { readonly refused: string };

/** What counts, and what must not be. */
export interface Expected {
  /** The only reason that counts. */
  readonly reason: string;
  /** From when on no call that begins may be let in any more; asked again after each call. */
  readonly letInUntil: () => number;
  readonly now?: () => number;
}

/** When the refusal was there, and what happened to the calls before it. */
export interface Refusal {
  readonly at: number;
  readonly served: number;
  readonly cut: number;
}

/**
 * untilRefused calls again and again until a call is refused. Any other reason is an error, and so is a call that was
 * let in although it began too late.
 */
export async function untilRefused(
  call: () => Promise<CallEnd>,
  { reason, letInUntil, now = () => performance.now() }: Expected,
): Promise<Refusal> {
  const before = { served: 0, cut: 0 };
  for (;;) {
    const begunAt = now();
    const end = await call();
    const at = now();
    if (typeof end === "object") {
      if (end.refused !== reason) throw new Error(`refused with ${end.refused} and not with ${reason}`);
      return { at, ...before };
    }
    const lateMs = begunAt - letInUntil();
    if (lateMs > 0) throw new Error(`a call that began ${lateMs.toFixed(1)} ms too late was ${end}`);
    before[end] += 1;
  }
}
