import assert from "node:assert/strict";
import { type HandUser, SandboxKit } from "./sandbox-kit.ts";

describe("sandbox: what a command prints", function () {
  this.timeout(60_000);

  let kit: SandboxKit;
  let hand: HandUser;

  before(async () => {
    kit = await SandboxKit.start();
    hand = await kit.newHand();
  });
  after(() => kit.stop());

  it("UTF-16 text comes back without NUL characters, which no store takes [B058]", async () => {
    const result = await hand.bash("printf 'h\\0i\\0'");
    assert.equal(result.output, "h\u2400i\u2400");
    assert.equal(result.outputBytes, 4n);
  });

  it("300 KB of multi-byte text is identical, wherever the pipe cut it [B060]", async () => {
    const text = "häß€漢😀".repeat(14_000);
    await hand.bash("python3 -c \"open('m.txt','w').write('häß€漢😀'*14000)\"");
    assert.equal((await hand.bash("cat m.txt")).output, text);
    assert.equal((await hand.tool("read", { file_path: "m.txt" })).output, text);
  });

  it("half a character at the end is one U+FFFD, and raw binary fails nothing [B061]", async () => {
    const half = await hand.bash("printf 'ok\\xe6\\xbc'");
    assert.equal(half.output, "ok\ufffd");
    assert.equal(half.outputBytes, 4n);
    const binary = await hand.bash("head -c 100000 /dev/urandom");
    assert.equal(binary.outputBytes, 100_000n);
    assert.equal(binary.output.isWellFormed(), true);
  });

  it("two thousand redraws with colours are one line [B063]", async () => {
    const script =
      "for i in $(seq 2000); do printf '\\r\\033[2K\\033[32mprogress %s%%\\033[0m' $i; done; echo; echo end";
    assert.equal((await hand.bash(script)).output, "progress 2000%\nend");
  });

  it("200 MB are cut in the middle with a marker, and the hand lives [A095]", async () => {
    const result = await hand.bash("echo first; head -c 200000000 /dev/zero | tr '\\0' y; echo; echo last");
    assert.ok(result.outputBytes > 200_000_000n);
    assert.ok(result.output.startsWith("first\n"));
    assert.ok(/\[… \d+ characters left out …\]/.test(result.output));
    assert.ok(/\nlast\n\[beginning and end of the raw output/.test(result.output), result.output.slice(-200));
    assert.ok(result.output.length < 300_000);
    assert.equal((await hand.bash("echo alive")).output, "alive");
  }).timeout(90_000);
});
