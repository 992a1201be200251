/** quantile is the value below which the share `q` (0 to 1) of the samples lies, between two samples by proportion. */
export function quantile(samples: readonly number[], q: number): number {
  if (samples.length === 0) throw new Error("no samples");
  const sorted = samples.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * q;
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

/** median is the middle sample. */
export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** One interleaved round: ours and, right beside it, the baseline. */
export interface Pair {
  readonly ours: number;
  readonly baseline: number;
}

/** ratios divides within each pair, so that what slows both down at the time cancels out. */
export function ratios(pairs: readonly Pair[]): number[] {
  return pairs.map(({ ours, baseline }) => ours / baseline);
}

/** differences subtracts within each pair. */
export function differences(pairs: readonly Pair[]): number[] {
  return pairs.map(({ ours, baseline }) => ours - baseline);
}
