import assert from "node:assert/strict";
import { HeadTailBytes } from "../../../services/sandbox/hand-agent/head-tail-bytes.ts";
import { HeadTailText } from "../../../services/sandbox/hand-agent/head-tail-text.ts";
import { TextCleaner } from "../../../services/sandbox/hand-agent/text-cleaner.ts";

/** Cleans a text that arrives in pieces of a given size. */
function clean(input: string | Buffer, pieceBytes = 1): string {
  const bytes = Buffer.from(input as string);
  let out = "";
  const cleaner = new TextCleaner((text) => {
    out += text;
  });
  for (let at = 0; at < bytes.length; at += pieceBytes) cleaner.push(bytes.subarray(at, at + pieceBytes));
  cleaner.end();
  return out;
}

describe("hand agent: output", () => {
  it("text is the same whatever the pieces it came in [B060]", () => {
    const text = "häß€漢😀 plain\tand more\r\nnext\n".repeat(20);
    for (const size of [1, 2, 3, 5, 7, 64, 10_000]) {
      assert.equal(clean(text, size), text.replaceAll("\r\n", "\n"), `pieces of ${size}`);
    }
  });

  it("a cut character is one U+FFFD, and nothing else is lost [B061]", () => {
    assert.equal(clean(Buffer.from([0x61, 0xe6, 0xbc])), "a\ufffd");
    assert.equal(clean(Buffer.from([0xff, 0x62, 0xf0, 0x9f, 0x98])), "\ufffdb\ufffd");
    assert.equal(clean("\ufeffbom"), "\ufeffbom");
  });

  it("NUL becomes a visible sign, other control characters go [B058]", () => {
    assert.equal(clean("a\0b\x01\x7f\x85c"), "a\u2400bc");
  });

  it("redraws collapse, sequences go, and a return at the end of a line keeps it [B063]", () => {
    assert.equal(clean("10%\r20%\r100%\n"), "100%\n");
    assert.equal(clean("\x1b[1mbold\x1b[0m \x1b]0;title\x07x\x1b(B\n"), "bold x\n");
    assert.equal(clean("old\x1b[2Knew\x1b[1Gnewer\n"), "newer\n");
    assert.equal(clean("kept\r"), "kept");
    assert.equal(clean("abc\b\bX\n"), "aX\n");
    assert.equal(clean("\x1b]8;;never closed\nnext\n"), "next\n");
    assert.equal(clean("\x1b["), "");
  });

  it("a line without end does not grow for ever", () => {
    const emitted: number[] = [];
    const cleaner = new TextCleaner((text) => emitted.push(text.length));
    for (let i = 0; i < 100; i += 1) cleaner.push(Buffer.alloc(10_000, "x"));
    assert.ok(emitted.length > 5);
    assert.ok(Math.max(...emitted) < 100_000);
  });

  it("a long text keeps head and tail and says how much is missing", () => {
    const text = new HeadTailText(100);
    for (let i = 0; i < 1_000; i += 1) text.push("0123456789");
    const kept = text.toString();
    assert.equal(text.isTruncated, true);
    assert.equal(
      kept,
      `${"0123456789".repeat(4)}\n[… 9900 characters left out …]\n${"0123456789".repeat(6)}`,
    );
  });

  it("a text at the limit is whole; a cut never leaves half a character", () => {
    const whole = new HeadTailText(10);
    for (const char of "0123456789") whole.push(char);
    assert.equal(whole.toString(), "0123456789");
    assert.equal(whole.isTruncated, false);
    const halves = new HeadTailText(9);
    halves.push("😀".repeat(50));
    assert.equal(halves.toString().isWellFormed(), true);
  });

  it("bytes: first and last are kept, all are counted", () => {
    for (const size of [1, 3, 999]) {
      const bytes = new HeadTailBytes(1_000);
      const input = Buffer.from(Array.from({ length: 9_990 }, (_, i) => i % 251));
      for (let at = 0; at < input.length; at += size) bytes.push(input.subarray(at, at + size));
      assert.equal(bytes.total, 9_990);
      assert.equal(bytes.isTruncated, true);
      assert.deepEqual(bytes.toBuffer(), Buffer.concat([input.subarray(0, 500), input.subarray(-500)]));
    }
    const small = new HeadTailBytes(1_000);
    small.push(Buffer.alloc(1_000, 7));
    assert.equal(small.isTruncated, false);
    assert.equal(small.toBuffer().length, 1_000);
  });
});
