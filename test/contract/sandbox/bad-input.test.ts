import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { type HandUser, SandboxKit } from "./sandbox-kit.ts";

const RESOURCES = { memoryBytes: 0n, cpuMillis: 0, maxProcesses: 0, diskBytes: 0n };

describe("sandbox: bad requests", function () {
  this.timeout(60_000);

  let kit: SandboxKit;
  let hand: HandUser;

  before(async () => {
    kit = await SandboxKit.start();
    hand = await kit.newHand();
  });
  after(() => kit.stop());

  async function refused(call: Promise<unknown>, field: string): Promise<void> {
    const error = await call.then(
      () => assert.fail(`${field} was accepted`),
      (caught: unknown) => caught,
    );
    assert.ok(GanglionError.is(error, "INVALID_FIELD"), `${field}: ${error}`);
    assert.equal(error.code, "INVALID_ARGUMENT");
    assert.deepEqual(
      error.violations.map((violation) => violation.field),
      [field],
    );
  }

  it("Execute names the field at fault", async () => {
    const good = hand.request("bash", { command: "true" });
    const bad: [string, object][] = [
      ["session_id", { sessionId: "" }],
      ["session_id", { sessionId: "sesn/../x" }],
      ["session_id", { sessionId: `sesn_${"a".repeat(70)}` }],
      ["hand_id", { handId: "" }],
      ["hand_id", { handId: "hand_../../etc" }],
      ["key", { key: "" }],
      ["key", { key: "a b" }],
      ["key", { key: "k".repeat(65) }],
      ["epoch", { epoch: 0n }],
      ["epoch", { epoch: -1n }],
      ["name", { name: "" }],
      ["name", { name: "n".repeat(129) }],
      ["input_json", { inputJson: Buffer.alloc(0) }],
      ["input_json", { inputJson: Buffer.alloc(2 * 1024 * 1024 + 1, " ") }],
      ["timeout", { timeout: { seconds: 601n, nanos: 0 } }],
      ["timeout", { timeout: { seconds: 0n, nanos: 0 } }],
      ["timeout", { timeout: { seconds: -1n, nanos: 0 } }],
    ];
    for (const [field, change] of bad) await refused(kit.harness.execute({ ...good, ...change }), field);
  });

  it("Provision, GetExecution, CancelExecution, Terminate and ListHands do too", async () => {
    const provision = {
      ...{ requestId: "r", sessionId: hand.sessionId, epoch: 1n },
      ...{ resources: undefined, repositories: [] },
    };
    await refused(kit.harness.provision({ ...provision, requestId: "" }), "request_id");
    await refused(kit.harness.provision({ ...provision, sessionId: "x" }), "session_id");
    for (const [field, change] of [
      ["memory_bytes", { memoryBytes: 1n }],
      ["memory_bytes", { memoryBytes: -1n }],
      ["cpu_millis", { cpuMillis: 64_001 }],
      ["max_processes", { maxProcesses: 15 }],
      ["disk_bytes", { diskBytes: 1n << 60n }],
    ] as const) {
      const request = { ...provision, resources: { ...RESOURCES, ...change } };
      await refused(kit.harness.provision(request), `resources.${field}`);
    }
    const ref = { sessionId: hand.sessionId, key: "k", epoch: 1n };
    await refused(kit.harness.getExecution({ ...ref, key: "", wait: false }), "key");
    await refused(kit.harness.cancelExecution({ ...ref, epoch: 0n }), "epoch");
    await refused(kit.harness.terminate({ handId: "", sessionId: hand.sessionId, epoch: 1n }), "hand_id");
    await refused(kit.harness.terminate({ handId: hand.hand.id, sessionId: "", epoch: 1n }), "session_id");
    await refused(kit.harness.listHands({ sessionId: "" }), "session_id");
  });

  it("another session's hand looks like none, and cannot be ended", async () => {
    const other = kit.newSession();
    const request = { ...hand.request("bash", { command: "true" }), sessionId: other };
    await assert.rejects(kit.harness.execute(request), (error: unknown) =>
      GanglionError.is(error, "HAND_NOT_FOUND"),
    );
    const nobody = { ...hand.request("bash", { command: "true" }), handId: newId("hand") };
    await assert.rejects(kit.harness.execute(nobody), (error: unknown) =>
      GanglionError.is(error, "HAND_NOT_FOUND"),
    );
    await kit.harness.terminate({ handId: hand.hand.id, sessionId: other, epoch: 1n });
    assert.equal((await hand.bash("echo alive")).output, "alive");
    assert.deepEqual((await kit.harness.listHands({ sessionId: other })).hands, []);
  });

  it("only harnesses execute; operators list and terminate", async () => {
    const denied = (error: unknown) => GanglionError.is(error, "ROLE_NOT_ALLOWED");
    for (const service of ["operator", "session", "mcp-proxy", "sandbox", "gateway"]) {
      const client = await kit.client(service);
      await assert.rejects(client.execute(hand.request("bash", { command: "true" })), denied, service);
    }
    const operator = await kit.client("operator", "alice");
    const shown = (await operator.listHands({ sessionId: "" })).hands.find((one) => one.id === hand.hand.id);
    assert.ok(shown!.hostPid > 1n);
    const { hands } = await kit.harness.listHands({ sessionId: hand.sessionId });
    assert.equal(hands[0]!.hostPid, 0n);
    const doomed = await kit.newHand();
    await operator.terminate({ handId: doomed.hand.id, sessionId: "", epoch: 0n });
    await operator.terminate({ handId: doomed.hand.id, sessionId: "", epoch: 0n });
    assert.equal((await doomed.bash("true")).isHandLost, true);
  });
});
