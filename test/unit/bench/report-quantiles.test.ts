import assert from "node:assert/strict";
import type { Figure } from "../../bench/report/figure.ts";
import { alone, reportQuantiles } from "../../bench/report/report-quantiles.ts";

function reported(...[figures, unit, pairs]: Tail<Parameters<typeof reportQuantiles>>): Figure[] {
  const all: Figure[] = [];
  reportQuantiles((figure) => void all.push(figure), figures, unit, pairs);
  return all;
}

type Tail<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

describe("figures that are quantiles", () => {
  const pairs = Array.from({ length: 101 }, (_, n) => ({ ours: n, baseline: n / 2 }));

  it("each is the quantile that its name ends with, against the same quantile of the baseline", () => {
    assert.deepEqual(reported(["tail_ms_p50", "tail_ms_p75", "tail_ms_p99"], "ms", pairs), [
      { name: "tail_ms_p50", value: 50, unit: "ms", baseline: 25, ratio: 2, n: 101 },
      { name: "tail_ms_p75", value: 75, unit: "ms", baseline: 37.5, ratio: 2, n: 101 },
      { name: "tail_ms_p99", value: 99, unit: "ms", baseline: 49.5, ratio: 2, n: 101 },
    ]);
  });

  it("without a baseline there is no ratio", () => {
    assert.deepEqual(reported(["takeover_s_p50"], "s", alone([1, 3, 2])), [
      { name: "takeover_s_p50", value: 2, unit: "s", baseline: null, ratio: null, n: 3 },
    ]);
  });

  it("a name that says no quantile is refused, and so is a figure without samples", () => {
    assert.throws(() => reported(["tail_ms"], "ms", pairs), /tail_ms does not say/);
    assert.throws(() => reported(["tail_ms_p50"], "ms", []), /no samples/);
  });
});
