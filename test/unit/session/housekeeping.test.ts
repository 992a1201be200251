import assert from "node:assert/strict";
import { createLogger } from "../../../services/common/log/create-logger.ts";
import { Housekeeping } from "../../../services/session/live/housekeeping.ts";

describe("housekeeping", () => {
  it("goes on as long as there is something to remove, and takes a failure for another time's work", async () => {
    const left = [20, 3, 0];
    let calls = 0;
    const removeOld = async () => {
      calls += 1;
      const removed = left.shift();
      if (removed === undefined) throw new Error("the database is away");
      return removed;
    };
    const log = createLogger({ service: "session", instance: "session-1" }, "error");
    const housekeeping = new Housekeeping({ removeOld }, log);
    try {
      await housekeeping.clean();
      assert.equal(calls, 3);
      await housekeeping.clean();
      assert.equal(calls, 4);
    } finally {
      housekeeping.close();
    }
    await housekeeping.clean();
    assert.equal(calls, 4);
  });
});
