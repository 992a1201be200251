import assert from "node:assert/strict";
import { type HandUser, SandboxKit } from "./sandbox-kit.ts";

describe("sandbox: file tools", function () {
  this.timeout(60_000);

  let kit: SandboxKit;
  let hand: HandUser;

  before(async () => {
    kit = await SandboxKit.start();
  });
  after(() => kit.stop());
  beforeEach(async () => {
    hand = await kit.newHand();
  });
  afterEach(async () => {
    await kit.harness.terminate({ handId: hand.hand.id, sessionId: hand.sessionId, epoch: 1n });
  });

  it("write, read, edit do what they say", async () => {
    const written = await hand.tool("write", { file_path: "a/b.txt", content: "one\ntwo\nthree\n" });
    assert.equal(written.output, "wrote 14 bytes to a/b.txt");
    assert.equal((await hand.tool("read", { file_path: "/workspace/a/b.txt" })).output, "one\ntwo\nthree\n");
    assert.equal((await hand.tool("read", { file_path: "a/b.txt", view_range: [2, 2] })).output, "two\n");
    assert.equal(
      (await hand.tool("read", { file_path: "a/b.txt", view_range: [2, 0] })).output,
      "two\nthree\n",
    );
    const edit = { file_path: "a/b.txt", old_string: "two", new_string: "$& 2" };
    assert.equal((await hand.tool("edit", edit)).output, "edited a/b.txt (1 replacement)");
    assert.equal((await hand.bash("cat a/b.txt")).output, "one\n$& 2\nthree");
    assert.match((await hand.tool("edit", edit)).output, /not found/);
    await hand.tool("write", { file_path: "c", content: "xx" });
    assert.match(
      (await hand.tool("edit", { file_path: "c", old_string: "x", new_string: "y" })).output,
      /occurs 2 times/,
    );
    await hand.tool("edit", { file_path: "c", old_string: "x", new_string: "y", replace_all: true });
    assert.equal((await hand.tool("read", { file_path: "c" })).output, "yy");
  });

  it("a path that leads outside is refused, by link, dangling link or dots [B081][A084]", async () => {
    await hand.bash(
      "ln -s /etc/passwd link; ln -s /etc/new dangling; ln -s / root; mkdir d; ln -s ../d d/self",
    );
    for (const file_path of [
      "link",
      "dangling",
      "root/etc/passwd",
      "/etc/passwd",
      "../etc/passwd",
      "d/self/../../../etc/x",
    ]) {
      const read = await hand.tool("read", { file_path });
      assert.equal(read.isError, true, file_path);
      assert.match(read.output, /PATH_ESCAPE/, file_path);
      const write = await hand.tool("write", { file_path, content: "x" });
      assert.match(write.output, /PATH_ESCAPE/, file_path);
    }
    assert.equal(
      (await hand.bash("ls /etc/new 2>&1; grep -c hand /etc/passwd")).output,
      "ls: cannot access '/etc/new': No such file or directory\n1",
    );
    await hand.tool("write", { file_path: "d/self/fine", content: "ok" });
    assert.equal((await hand.bash("cat d/fine")).output, "ok");
  });

  it("a reader never sees half a file, and a full disk leaves the old one [B083]", async () => {
    await hand.tool("write", { file_path: "f", content: "a".repeat(500_000) });
    const reader = hand.bash(
      "for i in $(seq 300); do head -c 1 f; tail -c 1 f; done | sort -u | tr -d '\\n'; wc -c < f",
    );
    for (const letter of ["b", "c", "d"]) {
      await hand.tool("write", { file_path: "f", content: letter.repeat(500_000) });
    }
    assert.match((await reader).output, /500000$/);
    assert.equal((await hand.bash("chmod 600 f; ls -A")).output, "f");
    await hand.tool("write", { file_path: "f", content: "x" });
    assert.equal((await hand.bash("stat -c %a f")).output, "600");
    const tooLarge = await hand.tool("write", { file_path: "f", content: "y".repeat(1_100_000) });
    assert.equal(tooLarge.isError, true);
    assert.equal((await hand.bash("cat f; ls -A")).output, "xf");
  });

  it("pipes, folders, devices and binary files are refused without hanging", async () => {
    await hand.bash("mkfifo pipe; mkdir folder; printf '\\0\\1' > binary; ln -s /dev/zero zero");
    assert.match((await hand.tool("read", { file_path: "pipe" })).output, /not a regular file/);
    assert.match((await hand.tool("read", { file_path: "folder" })).output, /not a regular file/);
    assert.match((await hand.tool("read", { file_path: "binary" })).output, /binary file of 2 bytes/);
    assert.match((await hand.tool("read", { file_path: "zero" })).output, /PATH_ESCAPE/);
    assert.match((await hand.tool("write", { file_path: "folder", content: "x" })).output, /directory/);
  });

  it("glob lists the newest first, grep finds lines, neither follows links", async () => {
    await hand.bash(
      "mkdir -p s/t && echo needle42 > s/t/old.txt && touch -d '1 hour ago' s/t/old.txt && echo other > s/new.txt && ln -s /usr/share s/share && mkdir -p node_modules && echo needle42 > node_modules/x.txt",
    );
    assert.equal(
      (await hand.tool("glob", { pattern: "**/*.txt" })).output,
      "/workspace/s/new.txt\n/workspace/s/t/old.txt",
    );
    assert.equal(
      (await hand.tool("grep", { pattern: "needle\\d+" })).output,
      "/workspace/s/t/old.txt:1:needle42",
    );
    assert.equal((await hand.tool("grep", { pattern: "nothing here" })).output, "no matches");
    assert.match((await hand.tool("grep", { pattern: "(" })).output, /invalid pattern/);
    assert.match((await hand.tool("glob", { pattern: "../*" })).output, /must be relative/);
    assert.match((await hand.tool("grep", { pattern: "x", path: "/etc" })).output, /PATH_ESCAPE/);
  });

  it("a pattern that would backtrack for ever ends", async () => {
    await hand.bash("python3 -c \"print('a'*4000+'!')\" > a.txt");
    const result = await hand.tool("grep", { pattern: "^(a+)+$" });
    assert.equal(result.output, "no matches");
  }).timeout(40_000);
});
