import assert from "node:assert/strict";
import { once } from "node:events";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DENIED_SYSCALLS } from "../../../services/sandbox/drivers/bubblewrap/seccomp-filter.ts";
import { type HandUser, SandboxKit } from "../../contract/sandbox/sandbox-kit.ts";
import { makeDataFolder, sandboxUser, spawnSandbox } from "../../contract/sandbox/sandbox-process.ts";
import { removeFolder } from "../../kit/remove-folder.ts";

const CANARY = "canary-4711-do-not-show";

describe("sandbox: what a hand can reach", function () {
  this.timeout(60_000);

  let kit: SandboxKit;
  let hand: HandUser;
  let hostPid: number;
  let secretFolder: string;
  let leaked: number;

  before(async () => {
    secretFolder = mkdtempSync(join(tmpdir(), "ganglion-leak-"));
    writeFileSync(join(secretFolder, "secret"), CANARY);
    leaked = openSync(join(secretFolder, "secret"), "r");
    kit = await SandboxKit.start({ CANARY }, leaked);
    hand = await kit.newHand();
    const operator = await kit.client("operator", "alice");
    hostPid = Number((await operator.listHands({ sessionId: hand.sessionId })).hands[0]!.hostPid);
  });
  after(async () => {
    await kit.stop();
    closeSync(leaked);
    removeFolder(secretFolder);
  });

  async function python(code: string): Promise<string> {
    await hand.tool("write", { file_path: "probe.py", content: code });
    return (await hand.bash("python3 probe.py 2>&1")).output;
  }

  it("no process of a hand has the service's environment, through PID 1 neither [A078][A079]", async () => {
    const environment = await hand.bash(
      "cat /proc/1/environ | wc -c; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env",
    );
    assert.match(environment.output, /^0\n/);
    assert.doesNotMatch(environment.output, /canary|GANGLION_(INSTANCE|TLS_DIR|DATA_DIR|SESSION)/);
    const service = readFileSync(`/proc/${kit.process.child.pid}/environ`, "latin1");
    assert.ok(service.includes(CANARY), "the control: the service itself has it");
  });

  it("a command has descriptors 0, 1 and 2 and no other, though the service leaks one [A080]", async () => {
    const open = readdirSync(`/proc/${kit.process.child.pid}/fd`).map((fd) =>
      linkOf(kit.process.child.pid!, fd),
    );
    assert.ok(open.includes(join(secretFolder, "secret")), "the control: the service has it open");
    const { output } = await hand.bash(
      "ls /proc/self/fd | tr '\\n' ' '; for p in /proc/[0-9]*; do ls -l $p/fd 2>/dev/null; done",
    );
    // 3 is the folder that ls itself reads.
    assert.match(output, /^0 1 2 3 \n?/);
    assert.doesNotMatch(output, /secret|ganglion-leak/);
  });

  it("no terminal, and no way to put input into one [A082]", async () => {
    const output = await python(
      "import fcntl,os,pty,termios\nm,s=pty.openpty()\ntry:\n  fcntl.ioctl(s,termios.TIOCSTI,b'x'); print('put')\nexcept OSError as e: print(e.errno)\ntry:\n  os.open('/dev/tty',os.O_RDWR); print('tty')\nexcept OSError as e: print('none')",
    );
    assert.equal(output, "1\nnone");
  });

  it("no network but loopback, with or without proxy variables; other families are refused [A088]", async () => {
    const output = await python(
      [
        "import socket",
        "print(sorted(name for _, name in socket.if_nameindex()))",
        "for host, port in (('1.1.1.1', 80), ('127.0.0.1', PORT), ('169.254.169.254', 80)):",
        "  try: socket.create_connection((host, port), 2); print('connected')",
        "  except OSError as e: print(e.errno)",
        "for family in (40, 38, 17, 31):",
        "  try: socket.socket(family, socket.SOCK_STREAM if family != 17 else socket.SOCK_RAW); print('made')",
        "  except OSError as e: print(e.errno)",
      ]
        .join("\n")
        .replace("PORT", kit.process.addr.split(":")[1]!),
    );
    // 101 = network unreachable, 111 = connection refused: the host's loopback is another one. 97 = no such family.
    assert.equal(output, "['lo']\n101\n111\n101\n97\n97\n97\n97");
  });

  it("the listed system calls answer EPERM, clone3 and the x32 calls ENOSYS [A093]", async () => {
    const numbers = JSON.stringify(Object.values(DENIED_SYSCALLS));
    const output = await python(
      [
        "import ctypes",
        "libc = ctypes.CDLL(None, use_errno=True)",
        "def call(n, *a):",
        "  ctypes.set_errno(0)",
        "  r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(x) for x in a])",
        "  return ctypes.get_errno() if r == -1 else 'ok'",
        `print(set(call(n, 0, 0, 0, 0, 0, 0) for n in ${numbers}))`,
        "print(call(435, 0, 0), call(0x40000000 + 39))",
        "print([call(56, flag | 17, 0, 0, 0, 0) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x2000000)])",
        "print(call(39) == 'ok')",
      ].join("\n"),
    );
    assert.equal(output, "{1}\n38 38\n[1, 1, 1, 1, 1]\nTrue");
    const tools = await hand.bash(
      "unshare -U true; unshare -m true; mount -t tmpfs x /tmp; nsenter -t 1 -m true; chroot /tmp true",
    );
    assert.equal(tools.isError, true);
    assert.doesNotMatch(tools.output, /root@/);
  });

  it("no capabilities, no new privileges, a filter, and set-user-id programs are ordinary [A093]", async () => {
    const { output } = await hand.bash(
      "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr -d '\\t'",
    );
    const none = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(
      (name) => `${name}:${"0".repeat(16)}`,
    );
    assert.deepEqual(output.split("\n"), [...none, "NoNewPrivs:1", "Seccomp:2"]);
  });

  it("the host sees the hand under a user id of its own", function () {
    const uids = readFileSync(`/proc/${hostPid}/status`, "utf8").match(
      /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$/m,
    )!;
    const service = statSync(`/proc/${kit.process.child.pid}`).uid;
    assert.equal(new Set(uids.slice(1)).size, 1);
    const started = kit.process.lines().find((line) => line.msg === "hands can be made")!;
    if (started.perHandUid !== true) {
      assert.equal(Number(uids[1]), service);
      assert.equal(sandboxUser(), undefined, "with a user of its own the service has subordinate ids");
      this.skip();
    }
    assert.notEqual(Number(uids[1]), service);
    assert.notEqual(Number(uids[1]), 0);
    const work = statSync(join(kit.folder, "bubblewrap", "hands", hand.hand.id, "work"));
    assert.equal(work.uid, Number(uids[1]));
    assert.equal(work.mode & 0o777, 0o700);
  });

  it("nothing of the host but programs can be read, and only the work folder and scratch space written", async () => {
    const reads = await hand.bash(
      `for p in /etc/shadow /root /home/hand/../root /var/lib /run/ganglion ${kit.folder} /sys /boot /work /proc/1/root/etc/shadow /dev/mem /dev/kmsg /dev/vda; do cat $p >/dev/null 2>&1 || ls $p >/dev/null 2>&1; [ -e $p ] && ls -d $p; done; echo end`,
    );
    assert.equal(reads.output, "end");
    const writes = await hand.bash(
      "for d in / /etc /usr/bin /opt/ganglion /opt/ganglion/agent /dev /proc /proc/sys/kernel /workspace /tmp /home/hand; do (touch $d/.probe) 2>/dev/null && echo $d; done",
    );
    assert.equal(writes.output, "/workspace\n/tmp\n/home/hand");
    const config = await hand.bash("echo x > /proc/sys/kernel/core_pattern; echo c > /proc/sysrq-trigger");
    assert.equal(config.isError, true);
  });

  it("one session's files and processes are not there for another [A084]", async () => {
    await hand.bash("echo mine > /workspace/mine; echo mine > /tmp/mine; sleep 321 &");
    const other = await kit.newHand();
    const { output } = await other.bash(
      "ls -A /workspace /tmp | tr '\\n' ' '; pgrep -c -f 'sleep 321'; ls /proc | grep -c '^[0-9]'",
    );
    assert.match(output, /^\/tmp: {2}\/workspace: 0\n/);
    assert.doesNotMatch(output, /mine/);
    await hand.bash("pkill sleep");
  });

  it("what leaves the process group ends with the hand, and its folder goes [A094]", async () => {
    const doomed = await kit.newHand();
    const mark = `/tmp/${doomed.hand.id}`;
    await doomed.bash(`(setsid sh -c '(while :; do date > ${mark}; sleep 0.05; done) &' &) ; sleep 0.1`);
    const operator = await kit.client("operator", "bob");
    const listed = (await operator.listHands({ sessionId: doomed.sessionId })).hands[0]!;
    const pidNamespace = statSync(`/proc/${listed.hostPid}/ns/pid`).ino;
    const started = Date.now();
    await kit.harness.terminate({ handId: doomed.hand.id, sessionId: doomed.sessionId, epoch: 1n });
    assert.ok(Date.now() - started < 2_000);
    assert.deepEqual(processesIn(pidNamespace), []);
    assert.equal(
      statSync(join(kit.folder, "bubblewrap/hands", doomed.hand.id), { throwIfNoEntry: false }),
      undefined,
    );
  });

  it("what a session left running is gone within two seconds of its end [A094]", async () => {
    const doomed = await kit.newHand();
    await doomed.bash("(setsid sh -c '(while :; do :; sleep 0.05; done) &' &) ; sleep 0.1");
    const operator = await kit.client("operator", "bob");
    const listed = (await operator.listHands({ sessionId: doomed.sessionId })).hands[0]!;
    const pidNamespace = statSync(`/proc/${listed.hostPid}/ns/pid`).ino;
    kit.leases.delete(doomed.sessionId);
    for (const deadline = Date.now() + 2000; processesIn(pidNamespace).length > 0; ) {
      assert.ok(Date.now() < deadline, "something of the hand still runs");
      await operator.listHands({ sessionId: doomed.sessionId });
    }
    const call = { ...{ sessionId: doomed.sessionId, handId: doomed.hand.id, epoch: 1n }, key: "late" };
    const late = kit.harness.execute({
      ...call,
      name: "bash",
      inputJson: Buffer.from("{}"),
      timeout: undefined,
      acknowledgedKeys: [],
    });
    await assert.rejects(late, { reason: "STALE_EPOCH" });
  }).timeout(20_000);

  it("a fork bomb and many files hurt their own hand only [A095]", async () => {
    const bomber = await kit.newHand();
    const bomb = bomber.bash(":(){ :|:& };:; wait", { timeoutMs: 3_000 });
    const files = bomber.tool("write", { file_path: "f", content: "x" });
    const neighbour: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      const started = Date.now();
      assert.equal((await hand.bash("echo fine")).output, "fine");
      neighbour.push(Date.now() - started);
    }
    assert.ok(Math.max(...neighbour) < 3_000, `neighbour waited ${neighbour}`);
    await files;
    const result = await bomb;
    assert.equal(result.isError || result.isHandLost || result.exitCode === 0, true);
    await kit.harness.terminate({ handId: bomber.hand.id, sessionId: bomber.sessionId, epoch: 1n });
    assert.equal((await hand.bash("echo alive")).output, "alive");
  }).timeout(40_000);
});

describe("sandbox: who may run the service", function () {
  this.timeout(60_000);

  it("it refuses to run as root", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const folder = makeDataFolder(undefined);
    const child = spawnSandbox(undefined, {
      GANGLION_INSTANCE: "sandbox-1",
      GANGLION_TLS_DIR: folder,
      GANGLION_SESSION_ADDR: "127.0.0.1:1",
      GANGLION_DATA_DIR: folder,
    });
    let said = "";
    child.stderr!.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    const [code] = await once(child, "close");
    removeFolder(folder);
    assert.equal(code, 78);
    assert.match(said, /refuses to run as root/);
  });
});

/** Host processes in a process namespace. */
function processesIn(namespace: number): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
        return !isZombie && statSync(`/proc/${pid}/ns/pid`).ino === namespace;
      } catch {
        return false;
      }
    });
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return "";
  }
}
