import assert from "node:assert/strict";
import { StreamLimits } from "../../../services/gateway/domain/stream-limits.ts";
import { OpenStreams } from "../../../services/gateway/rest/open-streams.ts";

describe("open event streams", () => {
  it("are bounded for one key and for all, and free their place when they end", () => {
    const streams = new OpenStreams(new StreamLimits());
    const open = (caller: string, count: number) => {
      for (let i = 0; i < count; i++) streams.opened("sesn_1", caller);
    };
    open("a", 500);
    assert.throws(() => streams.opened("sesn_1", "a"), { reason: "TOO_MANY_STREAMS" });
    open("b", 500);
    assert.throws(() => streams.opened("sesn_1", "c"), { reason: "TOO_MANY_STREAMS" });
    streams.closed("sesn_1", "a");
    streams.opened("sesn_1", "c");
  });

  it("begin with a send that came before, once", () => {
    const streams = new OpenStreams(new StreamLimits());
    streams.noteSent("sesn_1", 7n);
    assert.equal(streams.opened("sesn_1", "a"), 7n);
    assert.equal(streams.opened("sesn_1", "a"), undefined);
  });
});
