import assert from "node:assert/strict";
import { MUTATIONS, type Mutation } from "./parts/mutations.ts";
import { simulate } from "./simulate.ts";

/** Seeds within which each mutation must be noticed. */
const WITHIN = 3000;

describe("the simulator can fail", function () {
  this.timeout(600_000);

  for (const [mutation, sign] of Object.entries(MUTATIONS)) {
    it(`notices ${mutation}: ${sign.words}`, async () => {
      for (let seed = 1; seed <= WITHIN; seed++) {
        const { faults } = await simulate(seed, mutation as Mutation);
        const seen = faults.find((fault) => sign.shows.test(fault));
        if (seen !== undefined) return;
        assert.deepEqual(faults, [], `seed ${seed} noticed something else`);
      }
      assert.fail(`nothing was noticed in ${WITHIN} seeds`);
    });
  }
});
