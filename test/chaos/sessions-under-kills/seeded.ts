/** A stream of random numbers that a seed repeats. */
export interface Seeded {
  /** From 0 up to, and not, 1. */
  next(): number;
  between(low: number, high: number): number;
  shuffled<T>(items: readonly T[]): T[];
}

/** seeded makes the stream of a seed (mulberry32). */
export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    shuffled: (items) => {
      const left = [...items];
      return items.map(() => left.splice(Math.floor(next() * left.length), 1)[0] as (typeof items)[number]);
    },
  };
}
