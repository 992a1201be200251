import assert from "node:assert/strict";
import { Random } from "../../kit/random.ts";

describe("the random numbers of a seed", () => {
  it("come again with the same seed and label, and only then", () => {
    const draw = (seed: number, label?: string) => {
      const random = new Random(seed, label);
      return [random.shuffled([1, 2, 3, 4, 5, 6, 7, 8]), random.next(), random.between(10, 20)];
    };
    assert.deepEqual(draw(7), draw(7));
    assert.deepEqual(draw(7, "kills"), draw(7, "kills"));
    assert.notDeepEqual(draw(7), draw(8));
    assert.notDeepEqual(draw(7), draw(7, "kills"));
    assert.deepEqual((draw(7)[0] as number[]).toSorted(), [1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
