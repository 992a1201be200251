import assert from "node:assert/strict";
import { once } from "node:events";
import { HeldRequest } from "../../../services/harness/model/held-request.ts";

describe("a request of which nobody reads the end any more", () => {
  it("is given up and not completed, also while nothing is known of its answer", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const held = new HeldRequest(Buffer.from("{}"), Promise.resolve(), async (body, signal) => {
      await body.cancel();
      begun.resolve(signal);
      const [event] = await once(signal, "abort");
      throw event;
    });
    const signal = await begun.promise;
    assert.equal(held.complete(new AbortController().signal), undefined);
    assert.equal(signal.aborted, true);
  });
});
