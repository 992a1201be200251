import assert from "node:assert/strict";
import { newId } from "../../../services/common/ids/new-id.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type HandUser, SandboxKit, untilFile, untilRunning } from "./sandbox-kit.ts";

describe("sandbox: commands in a hand", function () {
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

  it("a background job does not hold the call back, is listed and goes on [B065]", async () => {
    const started = Date.now();
    const first = await hand.bash("sleep 600 & setsid sleep 601 & echo started; true");
    assert.ok(Date.now() - started < 5_000);
    assert.match(first.output, /^started\n/);
    assert.match(first.output, /still running in the background: .*sleep 600/);
    const second = await hand.bash("pgrep -c sleep");
    assert.equal(second.output, "2");
  });

  it("a server without redirects and a read from standard input do not block [B066]", async () => {
    const server = await hand.bash('python3 -m http.server 8123 & read x; echo "read:$?"');
    assert.match(server.output, /read:1/);
    const body =
      "for i in $(seq 100); do python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/\").status)' 2>/dev/null && break; sleep 0.05; done";
    assert.equal((await hand.bash(body)).output, "200");
  });

  it("all bytes written before the exit arrive while a quiet child holds the pipe [B067]", async () => {
    const result = await hand.bash("sleep 600 & head -c 1000000 /dev/zero | tr '\\0' x; echo; echo END");
    assert.equal(result.outputBytes, 1_000_005n);
    assert.ok(/\nEND\n\[[^\n]+\]\n\[still running/.test(result.output), result.output.slice(-200));
  });

  it("a timeout kills the whole tree, also what left the group [B068]", async () => {
    const result = await hand.tool("bash", {
      command: "setsid sleep 300 & (setsid sh -c 'sleep 301' &) ; sleep 302 & wait",
      timeout_ms: 1_000,
    });
    assert.equal(result.isTimedOut, true);
    assert.equal(result.isError, true);
    assert.match(result.output, /timed out after 1000 ms/);
    assert.equal((await hand.bash("pgrep -c sleep")).output.split("\n")[0], "0");
  });

  it("pagers, editors and prompts never wait for somebody [B071]", async () => {
    const script =
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; git init -q . && git commit -q --allow-empty -m x && git log && git commit -q --amend --allow-empty; tty";
    const result = await hand.bash(script, { timeoutMs: 15_000 });
    assert.equal(result.isTimedOut, false);
    assert.match(result.output, /not a tty/);
  });

  it("directory, variables, functions, aliases and options persist from call to call [B074]", async () => {
    await hand.bash(
      "mkdir sub && cd sub && export A='1 \"2\"\n3' B=x && C=(1 2) && f() { echo f:$1; } && shopt -s nullglob && set -o pipefail && umask 027",
    );
    const result = await hand.bash(
      `pwd; echo "$A"; echo "\${C[1]}"; f 7; shopt nullglob | tr -d "\\t "; umask; false | true; echo $?; env | grep ^B=`,
    );
    assert.equal(result.output, '/workspace/sub\n1 "2"\n3\n2\nf:7\nnullglobon\n0027\n1\nB=x');
    await hand.bash("unset B PAGER");
    assert.equal((await hand.bash(`echo \${B-unset} \${PAGER-unset}`)).output, "unset unset");
    const restarted = await hand.tool("bash", { restart: true });
    assert.equal(restarted.output, "bash session restarted");
    assert.equal((await hand.bash(`pwd; echo \${A-unset} $PAGER`)).output, "/workspace\nunset cat");
  });

  it("a command that breaks its shell breaks nothing for the next [B074]", async () => {
    await hand.bash("cd /tmp; export KEPT=1");
    for (const breaking of [
      "exit 3",
      "set -e; false",
      "exec true",
      "kill -9 $$",
      "if",
      "trap 'echo bye' EXIT; exit 4",
    ]) {
      const broken = await hand.bash(breaking);
      assert.equal(broken.isError, breaking !== "exec true", breaking);
      assert.equal((await hand.bash("echo $KEPT")).output.split("\n")[0], "1", breaking);
    }
  });

  it("a call that waits for another is cancelled at once, and the time of the wait does not count [B007]", async () => {
    const first = hand.bash("echo x > flag; sleep 3; echo first");
    await untilFile(hand, "flag");
    const key = newId("sevt");
    const waiting = hand.bash("touch never", { key });
    const patient = hand.bash("sleep 0.2; echo patient", { timeoutMs: 2_000 });
    await untilRunning(hand, key);
    const started = Date.now();
    await kit.harness.cancelExecution({ sessionId: hand.sessionId, key, epoch: 1n });
    assert.ok(Date.now() - started < 1_500);
    assert.equal((await waiting).outcome, ToolOutcome.TOOL_OUTCOME_NOT_RUN);
    assert.equal((await first).output, "first");
    assert.equal((await patient).output, "patient");
    assert.equal((await hand.bash("ls")).output, "flag");
  });

  it("a long output is kept raw in a file of the hand [B063]", async () => {
    const result = await hand.bash("printf '\\033[1mbold\\n'; head -c 600000 /dev/zero | tr '\\0' z");
    const file = /raw output are in (\S+)\]/.exec(result.output)![1]!;
    const raw = await hand.bash(`head -c 8 ${file} | od -An -tx1; stat -c %s ${file}`);
    assert.equal(raw.output, " 1b 5b 31 6d 62 6f 6c 64\n600009");
  });

  it("a non-zero exit is a tool error with its status, not a failed call", async () => {
    const result = await hand.bash("echo why; exit 7");
    assert.equal(result.exitCode, 7);
    assert.equal(result.isError, true);
    assert.equal(result.output, "why\n[exit code 7]");
    const fine = await hand.bash("true");
    assert.equal(fine.exitCode, 0);
    assert.equal(fine.output, "(no output)");
  });

  it("unknown tools and malformed input are tool errors", async () => {
    assert.match((await hand.tool("fly", {})).output, /unknown tool/);
    assert.match((await hand.tool("bash", { comand: "true" })).output, /unknown field "comand"/);
    assert.match((await hand.tool("bash", { command: 7 })).output, /command must be a string/);
    assert.match((await hand.tool("bash", [])).output, /not a JSON object/);
    assert.match((await hand.tool("read", {})).output, /file_path is required/);
    const request = { ...hand.request("bash", {}), inputJson: Buffer.from("{") };
    const { execution } = await kit.harness.execute(request);
    assert.equal(execution!.isError, true);
  });

  it("commands longer than an argument may be, and node and python, run", async () => {
    const long = `: ${"x".repeat(300_000)}\necho done`;
    assert.equal((await hand.bash(long)).output, "done");
    assert.equal((await hand.bash("node -p '1+1'; python3 -c 'print(2+2)'")).output, "2\n4");
  });
});
