import assert from "node:assert/strict";
import { type Figure, formatFigure } from "../../bench/report/figure.ts";

const figure: Figure = {
  name: "append_c1_ratio",
  value: 0.31234567,
  unit: "ratio",
  baseline: 2345.678,
  ratio: 0.31234567,
  n: 9,
};

describe("a figure's line", () => {
  it("has exactly the documented keys, in order, with four significant digits", () => {
    assert.equal(
      formatFigure(figure),
      '{"name":"append_c1_ratio","value":0.3123,"unit":"ratio","baseline":2346,"ratio":0.3123,"n":9}',
    );
  });

  it("says null where there is no baseline", () => {
    const line = formatFigure({ ...figure, baseline: null, ratio: null });
    assert.deepEqual(JSON.parse(line), { ...figure, value: 0.3123, baseline: null, ratio: null });
  });

  it("is one line", () => {
    assert.ok(!formatFigure(figure).includes("\n"));
  });

  for (const broken of [{ value: Number.NaN }, { baseline: Infinity }, { ratio: Number.NaN }, { n: 0 }]) {
    it(`is refused when the figure was not measured: ${Object.entries(broken).join("=")}`, () => {
      assert.throws(() => formatFigure({ ...figure, ...broken }), /append_c1_ratio was not measured/);
    });
  }
});
