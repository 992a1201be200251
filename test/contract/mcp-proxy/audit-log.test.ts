import assert from "node:assert/strict";
import { mkdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type Record as AuditRecord,
  AuditServiceService,
  RecordKind,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { canonical, followChain, GENESIS, hashOf } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { AuditStage } from "./audit-stage.ts";
import { briefly, failureOf } from "./proxy-kit.ts";

const START = { sequence: 0n, hash: GENESIS };

describe("the audit log as a chain", function () {
  this.timeout(120_000);
  let stage: AuditStage;

  before(async () => {
    stage = await AuditStage.start();
  });
  after(() => stage?.stop());
  afterEach(function () {
    stage?.explain(this.currentTest);
  });

  it("holds from its first record on, in the database and in the folder alike", async () => {
    await stage.list(await stage.bound());
    const lines = await stage.stored();
    const [head] = await stage.kit.sql("ganglion_owner", "SELECT sequence, hash FROM proxy.audit_head");
    assert.deepEqual(followChain(lines, START), { sequence: BigInt(head.sequence), hash: head.hash });
    stage.assertKept(lines);
    const opened = JSON.parse(lines[0] as string);
    assert.equal(opened.kind, "log_open");
    assert.match(opened.detail, /^ganglion \d+\.\d+\.\d+, sinks strict$/);
    const keyChange = JSON.parse(lines[1] as string);
    const { json, keys } = await (await stage.audit()).getPublicKeys({});
    assert.deepEqual([keyChange.kind, keyChange.detail], ["key_change", keys[0]?.keyId]);
    assert.equal(stage.read("keys.json"), json);
  });

  it("whatever a text holds, the database writes it as RFC 8785 says", async () => {
    const texts = [
      '"\\/\b\f\n\r\t',
      "\u0001\u001f\u007f\u0080\u2028\u2029",
      "é😀\ufffd\ufeff",
      "</script>",
      "",
    ];
    const entries = texts.map((text) => ({
      record: { kind: "anomaly", caller: text, target: text, detail: text, instance: "test", boot_id: "b" },
    }));
    const rows = await stage.kit.sql("ganglion_proxy", "SELECT * FROM proxy.write_records($1)", [
      JSON.stringify(entries),
    ]);
    rows.forEach(({ line }, i) => {
      const record = JSON.parse(line);
      assert.equal(record.detail, texts[i]);
      assert.equal(canonical(record), line);
      assert.equal(hashOf(record), record.hash);
    });
  });

  it("what a writer may not choose, it cannot", async () => {
    const chosen = { sequence: 1, created_at: "2001-01-01", prev: "x", hash: "y", log_id: "z", v: 7 };
    const record = { kind: "anomaly", instance: "test", boot_id: "b", ...chosen };
    const [row] = await stage.kit.sql("ganglion_proxy", "SELECT * FROM proxy.write_records($1)", [
      JSON.stringify([{ record }]),
    ]);
    const written = JSON.parse(row.line);
    for (const [key, value] of Object.entries(chosen)) assert.notEqual(written[key], String(value), key);
    assert.equal(written.v, 3);
    followChain(await stage.stored(), START);
  });

  it("nobody can change it, not even mcp-proxy's own role: 42501 [A137]", async () => {
    const attempts = [
      "INSERT INTO proxy.audit_records SELECT * FROM proxy.audit_records LIMIT 1",
      "UPDATE proxy.audit_records SET reason = ''",
      "DELETE FROM proxy.audit_records",
      "TRUNCATE proxy.audit_records",
      "ALTER TABLE proxy.audit_records ADD COLUMN x text",
      "ALTER TABLE proxy.audit_records DISABLE TRIGGER ALL",
      "DROP TABLE proxy.audit_records",
      "UPDATE proxy.audit_head SET sequence = 0",
      "DELETE FROM proxy.audit_head",
      "INSERT INTO proxy.audit_head (is_only, sequence, log_id) VALUES (false, 1, 'x')",
      "INSERT INTO proxy.audit_checkpoints VALUES (1, 'x', 'x', 'x', 'x')",
      "UPDATE proxy.audit_checkpoints SET note = ''",
      "DELETE FROM proxy.audit_checkpoints",
      "TRUNCATE proxy.audit_checkpoints",
      "DELETE FROM proxy.open_requests",
      "UPDATE proxy.fences SET ended = false, end_recorded = false",
      "CREATE OR REPLACE FUNCTION proxy.audit_line(r proxy.audit_records) RETURNS text LANGUAGE sql AS 'SELECT $$x$$'",
      "SET ROLE ganglion_owner",
    ];
    for (const attempt of attempts) {
      await assert.rejects(stage.kit.sql("ganglion_proxy", attempt), { code: "42501" }, attempt);
    }
    for (const foreign of [
      "SELECT * FROM proxy.audit_records",
      "SELECT * FROM proxy.audit_checkpoints",
      "SELECT * FROM proxy.write_records('[]')",
      "SELECT * FROM proxy.write_session_ends('x', 'x', 1)",
      "SELECT * FROM proxy.write_session_ends('x', 'x', 1, 'x')",
      "SELECT proxy.add_checkpoint(1, '', '', '', '')",
    ]) {
      await assert.rejects(stage.kit.sql("ganglion_session", foreign), { code: "42501" }, foreign);
    }
  });

  it("a watch sends what is stored, then what is written", async () => {
    const client = await stage.audit();
    const stop = new AbortController();
    const session = await stage.bound();
    const seen: string[] = [];
    const request = { afterSequence: 0n, sessionId: "", withLines: true };
    const watching = (async () => {
      for await (const { records, lastSequence } of client.watchRecords(request, { signal: stop.signal })) {
        for (const record of records) seen.push(record.line);
        assert.equal(lastSequence, records.at(-1)?.sequence);
        if (
          records.some(
            ({ sessionId, kind }) =>
              sessionId === session.sessionId && kind === RecordKind.RECORD_KIND_OUTCOME,
          )
        )
          return;
      }
    })();
    await stage.list(session);
    await watching;
    stop.abort();
    assert.deepEqual(seen, (await stage.stored()).slice(0, seen.length));
  });

  it("is for operators alone", async () => {
    const client = await stage.kit.client(AuditServiceService, "harness");
    for (const work of [
      client.getCheckpoint({ coveringSequence: 0n }),
      client.createCheckpoint({}),
      client.listCheckpoints({ afterSize: 0n, limit: 1 }),
      client.getReceipt({ sessionId: "sesn_x" }),
      client.getPublicKeys({}),
    ]) {
      assert.equal((await failureOf(work)).code, "PERMISSION_DENIED");
    }
  });

  it("a folder that does not take it: AUDIT_UNAVAILABLE, nothing sent, and it recovers by itself [A141] [L6]", async () => {
    const session = await stage.bound();
    await stage.list(session);
    const path = join(stage.folder, "records-mcp-proxy-1.jsonl");
    const sent = (await stage.upstream.journal.entries()).length;
    rmSync(path);
    mkdirSync(path);
    try {
      for (let tries = 0; tries < 3; tries += 1) {
        const error = await failureOf(stage.list(session));
        assert.deepEqual([error.code, error.reason], ["UNAVAILABLE", "AUDIT_UNAVAILABLE"]);
      }
      assert.equal((await stage.upstream.journal.entries()).length, sent);
    } finally {
      rmdirSync(path);
    }
    await stage.list(session);
    assert.equal(stage.kit.service.process.exitCode, null);
    // What was allowed and never sent is closed, also where its dispatch was in the database, and the folder lacks nothing.
    const recovered = ({ kind }: AuditRecord) => kind === RecordKind.RECORD_KIND_RECOVERY;
    const records = await stage.kit.recordsWhen(
      session.sessionId,
      (all) => all.filter(recovered).length === 3,
    );
    const isDispatched = ({ requestId }: AuditRecord) =>
      records.some((one) => one.requestId === requestId && one.kind === RecordKind.RECORD_KIND_DISPATCH);
    for (const record of records.filter(recovered)) {
      assert.equal(record.reason, isDispatched(record) ? "not_sent" : "not_dispatched");
    }
    const open = await stage.kit.sql("ganglion_owner", "SELECT FROM proxy.open_requests");
    assert.equal(open.length, 0);
    await stage.list(session);
    stage.assertKept(await stage.stored());
  });

  it("a row that somebody changed is an anomaly beside the denial, and over gRPC too", async () => {
    const session = await stage.bound();
    await stage.kit.sql(
      "ganglion_owner",
      "UPDATE proxy.bindings SET models = '{evil}' WHERE session_id = $1",
      [session.sessionId],
    );
    assert.equal((await failureOf(stage.list(session))).reason, "ROW_TAMPERED");
    assert.deepEqual(briefly(await stage.kit.records(session.sessionId)), [
      "decision deny ROW_TAMPERED",
      "anomaly ROW_TAMPERED",
    ]);
    assert.equal((await failureOf(stage.kit.lease(session.sessionId, 2n))).reason, "ROW_TAMPERED");
    const last = JSON.parse((await stage.stored()).at(-1) as string);
    assert.deepEqual([last.kind, last.operation, last.reason], ["anomaly", "issueToken", "ROW_TAMPERED"]);
    assert.equal(last.caller, "spiffe://ganglion.local/harness/harness-1");
  });

  it("two replicas end each session once, keep a file each, and their files are one log", async () => {
    const other = await stage.kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
    const sessions = await Promise.all(Array.from({ length: 6 }, () => stage.bound()));
    await Promise.all(sessions.map((session) => stage.kit.raiseFence(session.sessionId, 0n, true)));
    for (const { sessionId } of sessions) {
      await stage.receiptOf(sessionId);
      const kinds = briefly(await stage.kit.records(sessionId));
      assert.deepEqual(kinds, ["session_end"]);
    }
    other.process.kill("SIGTERM");
    assert.equal(await other.exit, 0);
    const lines = await stage.stored();
    assert.equal(JSON.parse(lines.at(-1) as string).kind, "log_close");
    stage.assertKept(lines);
    followChain(lines, START);
    const { checkpoint } = await (await stage.audit()).getCheckpoint({
      coveringSequence: BigInt(lines.length),
    });
    assert.equal(checkpoint?.size, BigInt(lines.length));
  });

  it("a killed process: its successor opens the log anew and the folder lacks nothing [A143]", async () => {
    await stage.list(await stage.bound());
    stage.kit.service.process.kill("SIGKILL");
    await stage.kit.service.exit;
    await stage.kit.restartProxy();
    await stage.list(await stage.bound());
    const lines = await stage.stored();
    followChain(lines, START);
    stage.assertKept(lines);
    const boots = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "log_open");
    assert.equal(new Set(boots.map(({ boot_id: id }) => id)).size, boots.length);
  });
});
