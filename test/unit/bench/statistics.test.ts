import assert from "node:assert/strict";
import { differences, median, quantile, ratios, slope } from "../../bench/report/statistics.ts";

describe("statistics of a benchmark", () => {
  it("the median is the middle sample, whatever their order", () => {
    assert.equal(median([30, 10, 20]), 20);
  });

  it("the median of an even number lies between the two in the middle", () => {
    assert.equal(median([4, 1, 2, 3]), 2.5);
  });

  it("numbers are sorted as numbers", () => {
    assert.equal(median([9, 10, 100]), 10);
  });

  it("a quantile interpolates between its neighbours", () => {
    assert.equal(quantile([0, 10, 20, 30, 40], 0.95), 38);
    assert.equal(quantile([7], 0.95), 7);
    assert.equal(quantile([1, 2], 0), 1);
    assert.equal(quantile([1, 2], 1), 2);
  });

  it("without samples there is no figure", () => {
    assert.throws(() => median([]), /no samples/);
  });

  it("the samples stay as they were", () => {
    const samples = [3, 1, 2];
    median(samples);
    assert.deepEqual(samples, [3, 1, 2]);
  });

  it("a slope is the median over all pairs of points: one that is off changes nothing", () => {
    const line = [0, 1, 2, 3, 4].map((x) => ({ x, y: 10 + 2 * x }));
    assert.equal(slope(line), 2);
    assert.equal(slope([...line, { x: 5, y: 900 }]), 2);
    assert.equal(
      slope([
        { x: 1, y: 5 },
        { x: 3, y: 1 },
      ]),
      -2,
    );
    assert.throws(() => slope([{ x: 1, y: 1 }]), /no samples/);
  });

  it("pairs are compared within each pair: a slow moment that hits both changes nothing", () => {
    const pairs = [
      { ours: 50, baseline: 100 },
      { ours: 5, baseline: 10 },
      { ours: 500, baseline: 1000 },
    ];
    assert.deepEqual(ratios(pairs), [0.5, 0.5, 0.5]);
    assert.deepEqual(differences([{ ours: 12, baseline: 4 }]), [8]);
  });
});
