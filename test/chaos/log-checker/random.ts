/** Numbers that one seed gives again. */
export interface Random {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number;
  /** True with that probability. */
  chance(probability: number): boolean;
  /** Another sequence of its own. */
  fork(): Random;
}

/** randomOf makes a sequence of a seed (xorshift over 32 bits). */
export function randomOf(seed: number): Random {
  let state = seed | 0 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (probability) => next() < probability,
    fork: () => randomOf(Math.floor(next() * 2 ** 31) + 1),
  };
}
