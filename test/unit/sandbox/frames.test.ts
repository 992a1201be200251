import assert from "node:assert/strict";
import { parseFromAgent } from "../../../services/sandbox/drivers/bubblewrap/parse-from-agent.ts";
import { encodeFrame, FrameReader, MAX_FRAME_BYTES } from "../../../services/sandbox/hand-agent/frames.ts";

const RESULT = {
  ...{ isError: false, text: "x", wasStarted: true, outputBytes: 0, isTruncated: false, exitCode: 0 },
  ...{ isTimedOut: false, isCancelled: false, background: [] },
};

describe("hand agent: frames", () => {
  it("messages arrive whole whatever the pieces", () => {
    const messages = [{ type: "ready" }, { a: "häß".repeat(1_000) }, { type: "pong", nonce: 1 }];
    const bytes = Buffer.concat(messages.map(encodeFrame));
    for (const size of [1, 3, 4, 1_000, bytes.length]) {
      const reader = new FrameReader();
      const got: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) got.push(...reader.push(bytes.subarray(at, at + size)));
      assert.deepEqual(got, messages);
    }
  });

  it("a length that lies allocates nothing and ends the hand", () => {
    assert.throws(() => new FrameReader().push(Buffer.from([0xff, 0xff, 0xff, 0xff])), RangeError);
    assert.throws(() => new FrameReader().push(Buffer.from([0, 0, 0, 1, 0x7b])), SyntaxError);
    assert.throws(() => encodeFrame("x".repeat(MAX_FRAME_BYTES)), RangeError);
  });

  it("what comes from inside is checked field by field", () => {
    const good = { type: "result", id: 1, result: RESULT };
    assert.deepEqual(parseFromAgent(good), good);
    const bad: unknown[] = [
      null,
      [],
      "ready",
      { type: "other" },
      { ...good, id: "1" },
      { ...good, id: -1 },
      { ...good, result: undefined },
      { ...good, result: { ...RESULT, text: 7 } },
      { ...good, result: { ...RESULT, isError: "no" } },
      { ...good, result: { ...RESULT, outputBytes: 1.5 } },
      { ...good, result: { ...RESULT, background: [{ pid: 1 }] } },
      { type: "pong" },
    ];
    for (const frame of bad) assert.throws(() => parseFromAgent(frame), JSON.stringify(frame));
  });

  it("text that no store takes is made whole", () => {
    const frame = parseFromAgent({ type: "result", id: 1, result: { ...RESULT, text: "a\ud800\0" } });
    assert.equal(frame.type === "result" && frame.result.text, "a\ufffd\u2400");
  });
});
