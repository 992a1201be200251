import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { newId } from "../../../services/common/ids/new-id.ts";
import { AuditServiceService, RecordKind } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { canonical, GENESIS } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { isSigned, type NoteKey, parseCheckpoint } from "../../../services/mcp-proxy/domain/signed-note.ts";
import { AuditStage } from "./audit-stage.ts";
import { briefly, failureOf } from "./proxy-kit.ts";

describe("checkpoints of the audit log, and receipts", function () {
  this.timeout(120_000);
  let stage: AuditStage;

  before(async () => {
    stage = await AuditStage.start();
  });
  after(() => stage?.stop());
  afterEach(function () {
    stage?.explain(this.currentTest);
  });

  it("a session's end is recorded once, with a checkpoint at it, and its receipt says so", async () => {
    const session = await stage.bound();
    await stage.list(session);
    await stage.list(session);
    const before = (await stage.kit.allRecords(session.sessionId)).length;
    await stage.kit.raiseFence(session.sessionId, 0n, true);
    const { record, checkpoint, json } = await stage.receiptOf(session.sessionId);
    assert.equal(record?.recordCount, BigInt(before));
    assert.equal(record?.kind, RecordKind.RECORD_KIND_SESSION_END);
    assert.equal(record?.workspaceId, "wrkspc_default");
    assert.equal(checkpoint?.size, record?.sequence);
    assert.equal(checkpoint?.headHash, record?.hash);
    assert.equal((await failureOf(stage.list(session))).reason, "SESSION_ENDED");
    await stage.kit.raiseFence(session.sessionId, 5n, true);
    const { json: keys } = await (await stage.audit()).getPublicKeys({});
    const receipt = JSON.parse(json);
    assert.equal(canonical(receipt.record), record?.line);
    assert.ok(isSigned(receipt.checkpoint, knownKeys(keys)));
    assert.equal(parseCheckpoint(receipt.checkpoint)?.headHash, record?.hash);
    const ends = briefly(await stage.kit.records(session.sessionId)).filter((text) => text === "session_end");
    assert.equal(ends.length, 1);
    const other = newId("sesn");
    assert.equal(
      (await failureOf((await stage.audit()).getReceipt({ sessionId: other }))).reason,
      "RECEIPT_NOT_FOUND",
    );
  });

  it("waits with a session's end until its last request is closed", async () => {
    const session = await stage.bound();
    const input = { duration: 20, steps: 20 };
    const running = stage.call(session, "trigger-long-running-operation", input);
    running.catch(() => {});
    await stage.upstream.journal.waitFor(
      (entry) => JSON.stringify(entry.arguments) === JSON.stringify(input),
    );
    await stage.kit.raiseFence(session.sessionId, 0n, true);
    const { record } = await stage.receiptOf(session.sessionId);
    const kinds = briefly(await stage.kit.records(session.sessionId)).map((text) => text.split(" ")[0]);
    assert.deepEqual(kinds, ["decision", "dispatch", "outcome", "session_end"]);
    // With the two of its binding.
    assert.equal(record?.recordCount, 5n);
  });

  it("checkpoints extend each other, are kept outside, and cover what an operator asks for", async () => {
    const client = await stage.audit();
    await stage.list(await stage.bound());
    const { checkpoint } = await client.createCheckpoint({});
    const again = await client.createCheckpoint({});
    const [head] = await stage.kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head");
    assert.equal(String(again.checkpoint?.size), head.sequence);
    assert.ok(checkpoint && again.checkpoint && again.checkpoint.size >= checkpoint.size);
    const { checkpoints } = await client.listCheckpoints({ afterSize: 0n, limit: 1000 });
    const keys = knownKeys((await client.getPublicKeys({})).json);
    let prev = GENESIS;
    for (const each of checkpoints) {
      assert.equal(each.prev, prev);
      assert.ok(isSigned(each.note, keys));
      prev = each.digest;
    }
    const file = stage.read("checkpoints-mcp-proxy-1.notes");
    assert.equal(file, checkpoints.map(({ note }) => `${note}\n`).join(""));
    const covering = await client.getCheckpoint({ coveringSequence: 2n });
    assert.deepEqual(covering.checkpoint, checkpoints[0]);
    const newest = await client.getCheckpoint({ coveringSequence: 0n });
    assert.deepEqual(newest.checkpoint, again.checkpoint);
    const beyond = await failureOf(client.getCheckpoint({ coveringSequence: 1_000_000n }));
    assert.equal(beyond.reason, "CHECKPOINT_NOT_FOUND");
  });

  it("a record that was altered since the last checkpoint is not signed, and that is recorded [A145]", async () => {
    const client = await stage.audit();
    await client.createCheckpoint({});
    await stage.list(await stage.bound());
    const alter = (from: string, to: string) =>
      stage.kit.sql(
        "ganglion_owner",
        `UPDATE proxy.audit_records SET reason = '${to}' WHERE reason = '${from}' AND session_id <> ''
         AND sequence > (SELECT max(size) FROM proxy.audit_checkpoints) RETURNING sequence`,
      );
    const [altered] = await alter("ok", "not so");
    const error = await failureOf(client.createCheckpoint({}));
    assert.deepEqual([error.code, error.reason], ["DATA_LOSS", "CHECKPOINT_REFUSED"]);
    const last = JSON.parse((await stage.stored()).at(-1) as string);
    assert.deepEqual([last.kind, last.reason], ["anomaly", "CHECKPOINT_REFUSED"]);
    assert.equal(last.detail, `record ${altered.sequence} was altered`);
    await alter("not so", "ok");
    assert.ok((await client.createCheckpoint({})).checkpoint);
  });

  it("a database that was set back does not get another checkpoint for what was signed [A145]", async () => {
    const client = await stage.audit();
    await client.createCheckpoint({});
    const [gone] = await stage.kit.sql(
      "ganglion_owner",
      "DELETE FROM proxy.audit_checkpoints WHERE size = (SELECT max(size) FROM proxy.audit_checkpoints) RETURNING *",
    );
    await stage.list(await stage.bound());
    assert.equal((await failureOf(client.createCheckpoint({}))).reason, "CHECKPOINT_REFUSED");
    // The successor knows it from the file.
    await stage.kit.restartProxy();
    const after = await stage.kit.client(AuditServiceService, "operator");
    assert.equal((await failureOf(after.createCheckpoint({}))).reason, "CHECKPOINT_REFUSED");
    await stage.kit.sql(
      "ganglion_owner",
      "INSERT INTO proxy.audit_checkpoints VALUES ($1, $2, $3, $4, $5, $6)",
      [gone.size, gone.head_hash, gone.prev, gone.digest, gone.note, gone.created_at],
    );
    assert.ok((await after.createCheckpoint({})).checkpoint);
  });
});

function knownKeys(json: string): NoteKey[] {
  return JSON.parse(json).keys.map(({ vkey }: { vkey: string }) => {
    const [name = "", keyId = "", ...rest] = vkey.split("+");
    const raw = Buffer.from(rest.join("+"), "base64").subarray(1);
    const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
    return { name, keyId, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
  });
}
