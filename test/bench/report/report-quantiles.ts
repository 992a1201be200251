import type { Bench } from "./run-suites.ts";
import { type Pair, quantile } from "./statistics.ts";

/** Quantiles that a figure's name may end with. */
const QUANTILES: Readonly<Record<string, number>> = { p50: 0.5, p75: 0.75, p99: 0.99 };

/**
 * reportQuantiles reports figures whose names end with the quantile they are: `tail_ms_p99`. Each is the quantile of
 * ours, held against the same quantile of the baseline; NaN as the baseline's samples means that there is none.
 */
export function reportQuantiles(
  report: Bench["report"],
  figures: readonly string[],
  unit: "ms" | "s",
  pairs: readonly Pair[],
): void {
  for (const name of figures) {
    const q = QUANTILES[name.split("_").at(-1) as string];
    if (q === undefined) throw new Error(`${name} does not say which quantile it is`);
    const of = (side: keyof Pair) =>
      quantile(
        pairs.map((pair) => pair[side]),
        q,
      );
    const value = of("ours");
    const baseline = pairs.some((pair) => Number.isNaN(pair.baseline)) ? null : of("baseline");
    report({
      name,
      value,
      unit,
      baseline,
      ratio: baseline === null ? null : value / baseline,
      n: pairs.length,
    });
  }
}

/** alone makes pairs of samples that nothing is held against. */
export function alone(samples: readonly number[]): Pair[] {
  return samples.map((ours) => ({ ours, baseline: Number.NaN }));
}
