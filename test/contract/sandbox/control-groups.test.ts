import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { delegateCgroup, removeCgroup } from "../../../services/cli/up/delegated-cgroup.ts";
import { HandUser, SandboxKit } from "./sandbox-kit.ts";
import { sandboxUser } from "./sandbox-process.ts";

const MIB = 1024n * 1024n;

describe("sandbox: limits of a hand as a whole", function () {
  this.timeout(60_000);

  const user = sandboxUser();
  const cgroup = user && delegateCgroup(`test-${process.pid}`, user);
  const folders = Object.values(cgroup?.folders ?? {});
  let kit: SandboxKit | undefined;

  before(async function () {
    // Control groups are given by root; without them the service says what it cannot enforce.
    if (folders.length === 0) return this.skip();
    kit = await SandboxKit.start({ GANGLION_CGROUP_ROOT: folders.join(",") });
  });
  after(async () => {
    await kit?.stop();
    removeCgroup(cgroup);
  });

  async function limitedHand(): Promise<HandUser> {
    const sessionId = kit!.newSession();
    const { hand } = await kit!.harness.provision({
      requestId: "limited",
      sessionId,
      epoch: 1n,
      resources: { memoryBytes: 256n * MIB, cpuMillis: 1_000, maxProcesses: 64, diskBytes: 16n * MIB },
      repositories: [],
    });
    return new HandUser(kit!, sessionId, hand!);
  }

  it("memory and processes are bounded, and the hand says which limits are not enforced [A095]", async () => {
    const hand = await limitedHand();
    assert.equal(hand.hand.unenforcedLimits.includes("memory"), false);
    assert.ok(hand.hand.unenforcedLimits.includes("disk"));
    const memory = await hand.bash("python3 -c 'x = bytearray(600 << 20); print(len(x))'");
    assert.equal(memory.isError, true);
    assert.doesNotMatch(memory.output, /629145600/);
    const next = memory.isHandLost ? await limitedHand() : hand;
    const processes = await next.bash(
      "for i in $(seq 100); do sleep 5 & done 2>&1; jobs -p | wc -l; kill $(jobs -p)",
    );
    assert.match(processes.output, /Resource temporarily unavailable/);
    const file = await next.bash("head -c 50000000 /dev/zero > big; stat -c %s big");
    assert.match(file.output, /16777216/);
  });

  it("the groups of a hand go with it, and those of a dead service at the next start [B070]", async () => {
    const hand = await limitedHand();
    const groups = folders.map((folder) => `${folder}/${hand.hand.id}`);
    assert.ok(groups.every((group) => existsSync(group)));
    await kit!.harness.terminate({ handId: hand.hand.id, sessionId: hand.sessionId, epoch: 1n });
    assert.ok(groups.every((group) => !existsSync(group)));
    await limitedHand();
    await kit!.restart("SIGKILL");
    for (const folder of folders) {
      assert.deepEqual(
        readdirSync(folder).filter((name) => name.startsWith("hand_")),
        [],
      );
    }
  });
});
