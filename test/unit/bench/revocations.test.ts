import assert from "node:assert/strict";
import { untilCut } from "../../bench/report/until-cut.ts";
import { type CallEnd, untilRefused } from "../../bench/report/until-refused.ts";

/** Calls that take 10 ms each on a clock of their own and end as told. */
function played(ends: CallEnd[], letInUntil: number) {
  let clock = 0;
  const call = async () => {
    clock += 10;
    return ends.shift() ?? assert.fail("a call too many");
  };
  return untilRefused(call, {
    reason: "SESSION_ENDED",
    letInUntil: () => letInUntil,
    now: () => clock,
  });
}

const ENDED = { refused: "SESSION_ENDED" };

describe("waiting for a refusal", () => {
  it("is over when it is there, and counts the calls before it", async () => {
    const refusal = await played(["served", "served", "cut", ENDED], 30);
    assert.deepEqual(refusal, { at: 40, served: 2, cut: 1 });
  });

  it("fails when a call that began too late was let in, to its end or not", async () => {
    await assert.rejects(played(["served", "served", "served", ENDED], 15), /5\.0 ms too late was served/);
    await assert.rejects(played(["served", "served", "cut", ENDED], 15), /5\.0 ms too late was cut/);
  });

  it("takes no other reason for a refusal, and no error of the call", async () => {
    await assert.rejects(played(["served", { refused: "DATABASE_UNAVAILABLE" }], 50), /DATABASE_UNAVAILABLE/);
    await assert.rejects(played([], 50), /a call too many/);
  });
});

describe("waiting for a stream to be cut", () => {
  it("takes the time from the end of the session", async () => {
    assert.equal(await untilCut(Promise.resolve(130), 100, 1000), 30);
  });

  it("fails when it still runs after the bound", async () => {
    await assert.rejects(untilCut(new Promise(() => {}), 0, 5), /still runs 5 ms after/);
  });

  it("fails when it was over before, or ended by itself", async () => {
    await assert.rejects(untilCut(Promise.resolve(99), 100, 1000), /was over before/);
    await assert.rejects(untilCut(Promise.resolve(Number.NaN), 100, 1000), /was over before/);
  });
});
