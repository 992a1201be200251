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

/** A measured value `y` at `x`. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** slope is how much `y` rises with `x`: the median over all pairs of points, so that a few odd ones change nothing. */
export function slope(points: readonly Point[]): number {
  const slopes = points.flatMap((from, index) =>
    points
      .slice(index + 1)
      .filter((to) => to.x !== from.x)
      .map((to) => (to.y - from.y) / (to.x - from.x)),
  );
  return median(slopes);
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
