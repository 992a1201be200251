import assert from "node:assert/strict";
import { createPublicKey, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "../../../services/common/ids/new-id.ts";
import { AuditServiceService, RecordKind } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { McpProxyServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { canonical, followChain, GENESIS, hashOf } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { isSigned, type NoteKey, parseCheckpoint } from "../../../services/mcp-proxy/domain/signed-note.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import { type BoundSession, briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

const START = { sequence: 0n, hash: GENESIS };

describe("the audit log as a chain", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-audit-"));
    upstream = await startMcpUpstream();
    kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host,
      GANGLION_AUDIT_DIR: folder,
    });
  });
  after(async () => {
    await kit?.stop();
    await upstream?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(function () {
    if (this.currentTest?.state === "failed")
      console.log(kit.service.output().split("\n").slice(-6).join("\n"));
  });

  const audit = () => kit.client(AuditServiceService, "operator");
  const bound = () => kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: upstream.token }] });
  const list = async (of: BoundSession) =>
    (await kit.mcp()).listTools(
      { mcpServerName: "demo" },
      { metadata: { "ganglion-session-token": of.token } },
    );
  const stored = async (): Promise<string[]> =>
    (
      await kit.sql(
        "ganglion_owner",
        "SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r ORDER BY sequence",
      )
    ).map(({ line }) => line);
  /** All instances' files, merged as docs/AUDIT_FORMAT.md says. */
  const kept = (): string[] => {
    const files = readdirSync(folder).filter((name) => name.startsWith("records-"));
    const lines = files.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1));
    const sequence = (line: string) => Number(JSON.parse(line).sequence);
    return [...new Set(lines)].sort((a, b) => sequence(a) - sequence(b));
  };
  /** What a test wrote past every process is in no file. */
  const sameLines = (files: string[], all: string[]) => {
    const expected = all.filter((line) => JSON.parse(line).instance !== "test");
    const different = expected.findIndex((line, i) => line !== files[i]);
    assert.deepEqual([files.length, files[different]], [expected.length, expected[different]]);
  };
  const knownKeys = (json: string): NoteKey[] =>
    JSON.parse(json).keys.map(({ vkey }: { vkey: string }) => {
      const [name = "", keyId = "", ...rest] = vkey.split("+");
      const raw = Buffer.from(rest.join("+"), "base64").subarray(1);
      const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
      return { name, keyId, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
    });
  const receiptOf = async (sessionId: string) => {
    const client = await audit();
    for (;;) {
      const receipt = await client.getReceipt({ sessionId }).catch((error) => {
        assert.equal(error.reason, "RECEIPT_NOT_FOUND");
      });
      if (receipt) return receipt;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  it("holds from its first record on, in the database and in the folder alike", async () => {
    await list(await bound());
    const lines = await stored();
    const [head] = await kit.sql("ganglion_owner", "SELECT sequence, hash FROM proxy.audit_head");
    assert.deepEqual(followChain(lines, START), { sequence: BigInt(head.sequence), hash: head.hash });
    sameLines(kept(), lines);
    const opened = JSON.parse(lines[0] as string);
    assert.equal(opened.kind, "log_open");
    assert.match(opened.detail, /^ganglion \d+\.\d+\.\d+, sinks strict$/);
    const keyChange = JSON.parse(lines[1] as string);
    const { json, keys } = await (await audit()).getPublicKeys({});
    assert.deepEqual([keyChange.kind, keyChange.detail], ["key_change", keys[0]?.keyId]);
    assert.equal(readFileSync(join(folder, "keys.json"), "utf8"), json);
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
    const rows = await kit.sql("ganglion_proxy", "SELECT * FROM proxy.write_records($1)", [
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
    const [row] = await kit.sql("ganglion_proxy", "SELECT * FROM proxy.write_records($1)", [
      JSON.stringify([{ record }]),
    ]);
    const written = JSON.parse(row.line);
    for (const [key, value] of Object.entries(chosen)) assert.notEqual(written[key], String(value), key);
    assert.equal(written.v, 1);
    followChain(await stored(), START);
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
      await assert.rejects(kit.sql("ganglion_proxy", attempt), { code: "42501" }, attempt);
    }
    for (const foreign of [
      "SELECT * FROM proxy.audit_records",
      "SELECT * FROM proxy.audit_checkpoints",
      "SELECT * FROM proxy.write_records('[]')",
      "SELECT * FROM proxy.write_session_ends('x', 'x', 1)",
      "SELECT proxy.add_checkpoint(1, '', '', '', '')",
    ]) {
      await assert.rejects(kit.sql("ganglion_session", foreign), { code: "42501" }, foreign);
    }
  });

  it("a session's end is recorded once, with a checkpoint at it, and its receipt says so", async () => {
    const session = await bound();
    await list(session);
    await list(session);
    const before = (await kit.records(session.sessionId)).length;
    await kit.raiseFence(session.sessionId, 0n, true);
    const { record, checkpoint, json } = await receiptOf(session.sessionId);
    assert.equal(record?.recordCount, BigInt(before));
    assert.equal(record?.kind, RecordKind.RECORD_KIND_SESSION_END);
    assert.equal(record?.workspaceId, "wrkspc_default");
    assert.equal(checkpoint?.size, record?.sequence);
    assert.equal(checkpoint?.headHash, record?.hash);
    assert.equal((await failureOf(list(session))).reason, "SESSION_ENDED");
    await kit.raiseFence(session.sessionId, 5n, true);
    const { json: keys } = await (await audit()).getPublicKeys({});
    const receipt = JSON.parse(json);
    assert.equal(canonical(receipt.record), record?.line);
    assert.ok(isSigned(receipt.checkpoint, knownKeys(keys)));
    assert.equal(parseCheckpoint(receipt.checkpoint)?.headHash, record?.hash);
    const ends = briefly(await kit.records(session.sessionId)).filter((text) => text === "session_end");
    assert.equal(ends.length, 1);
    const other = newId("sesn");
    assert.equal(
      (await failureOf((await audit()).getReceipt({ sessionId: other }))).reason,
      "RECEIPT_NOT_FOUND",
    );
  });

  it("waits with a session's end until its last request is closed", async () => {
    const session = await bound();
    const input = { duration: 20, steps: 20 };
    const key = newId("sevt");
    const running = (await kit.mcp()).callTool(
      {
        mcpServerName: "demo",
        name: "trigger-long-running-operation",
        inputJson: Buffer.from(JSON.stringify(input)),
        key,
        timeout: undefined,
        acknowledgedKeys: [],
      },
      { metadata: { "ganglion-session-token": session.token } },
    );
    running.catch(() => {});
    await upstream.journal.waitFor((entry) => JSON.stringify(entry.arguments) === JSON.stringify(input));
    await kit.raiseFence(session.sessionId, 0n, true);
    const { record } = await receiptOf(session.sessionId);
    const kinds = briefly(await kit.records(session.sessionId)).map((text) => text.split(" ")[0]);
    assert.deepEqual(kinds, ["decision", "dispatch", "outcome", "session_end"]);
    assert.equal(record?.recordCount, 3n);
  });

  it("checkpoints extend each other, are kept outside, and cover what an operator asks for", async () => {
    const client = await audit();
    await list(await bound());
    const { checkpoint } = await client.createCheckpoint({});
    const again = await client.createCheckpoint({});
    const [head] = await kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head");
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
    const file = readFileSync(join(folder, "checkpoints-mcp-proxy-1.notes"), "utf8");
    assert.equal(file, checkpoints.map(({ note }) => `${note}\n`).join(""));
    const covering = await client.getCheckpoint({ coveringSequence: 2n });
    assert.deepEqual(covering.checkpoint, checkpoints[0]);
    const newest = await client.getCheckpoint({ coveringSequence: 0n });
    assert.deepEqual(newest.checkpoint, again.checkpoint);
    const beyond = await failureOf(client.getCheckpoint({ coveringSequence: 1_000_000n }));
    assert.equal(beyond.reason, "CHECKPOINT_NOT_FOUND");
  });

  it("a watch sends what is stored, then what is written", async () => {
    const client = await audit();
    const stop = new AbortController();
    const session = await bound();
    const seen: string[] = [];
    const request = { afterSequence: 0n, sessionId: "", withLines: true };
    const watching = (async () => {
      for await (const { records, lastSequence } of client.watchRecords(request, { signal: stop.signal })) {
        for (const record of records) seen.push(record.line);
        assert.equal(lastSequence, records.at(-1)?.sequence);
        if (records.some(({ sessionId, kind }) => sessionId === session.sessionId && kind === 3)) return;
      }
    })();
    await list(session);
    await watching;
    stop.abort();
    assert.deepEqual(seen, (await stored()).slice(0, seen.length));
  });

  it("is for operators alone", async () => {
    const client = await kit.client(AuditServiceService, "harness");
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
    const session = await bound();
    await list(session);
    const path = join(folder, "records-mcp-proxy-1.jsonl");
    const sent = (await upstream.journal.entries()).length;
    rmSync(path);
    mkdirSync(path);
    try {
      for (let tries = 0; tries < 3; tries += 1) {
        const error = await failureOf(list(session));
        assert.deepEqual([error.code, error.reason], ["UNAVAILABLE", "AUDIT_UNAVAILABLE"]);
      }
      assert.equal((await upstream.journal.entries()).length, sent);
    } finally {
      rmdirSync(path);
    }
    await list(session);
    assert.equal(kit.service.process.exitCode, null);
    // What was allowed and never sent is closed, and the folder lacks nothing.
    const isClosed = async () => {
      const [open] = await kit.sql("ganglion_owner", "SELECT count(*)::int AS n FROM proxy.open_requests");
      return open.n === 0;
    };
    while (!(await isClosed())) await new Promise((resolve) => setTimeout(resolve, 100));
    const records = briefly(await kit.records(session.sessionId));
    assert.equal(records.filter((text) => text === "recovery not_dispatched").length, 3);
    await list(session);
    sameLines(kept(), await stored());
  });

  it("a row that somebody changed is an anomaly beside the denial, and over gRPC too", async () => {
    const session = await bound();
    await kit.sql("ganglion_owner", "UPDATE proxy.bindings SET models = '{evil}' WHERE session_id = $1", [
      session.sessionId,
    ]);
    assert.equal((await failureOf(list(session))).reason, "ROW_TAMPERED");
    assert.deepEqual(briefly(await kit.records(session.sessionId)), [
      "decision deny ROW_TAMPERED",
      "anomaly ROW_TAMPERED",
    ]);
    assert.equal((await failureOf(kit.lease(session.sessionId, 2n))).reason, "ROW_TAMPERED");
    const last = JSON.parse((await stored()).at(-1) as string);
    assert.deepEqual([last.kind, last.operation, last.reason], ["anomaly", "issueToken", "ROW_TAMPERED"]);
    assert.equal(last.caller, "spiffe://ganglion.local/harness/harness-1");
  });

  it("two replicas end each session once, keep a file each, and their files are one log", async () => {
    const other = await kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
    const sessions = await Promise.all(Array.from({ length: 6 }, () => bound()));
    await Promise.all(sessions.map((session) => kit.raiseFence(session.sessionId, 0n, true)));
    for (const { sessionId } of sessions) {
      await receiptOf(sessionId);
      const kinds = briefly(await kit.records(sessionId));
      assert.deepEqual(kinds, ["session_end"]);
    }
    other.process.kill("SIGTERM");
    assert.equal(await other.exit, 0);
    const lines = await stored();
    assert.equal(JSON.parse(lines.at(-1) as string).kind, "log_close");
    sameLines(kept(), lines);
    followChain(lines, START);
    const { checkpoint } = await (await audit()).getCheckpoint({ coveringSequence: BigInt(lines.length) });
    assert.equal(checkpoint?.size, BigInt(lines.length));
  });

  it("spans, metrics and log lines carry no token, header, input or address with a query [A149]", async () => {
    const exported: string[] = [];
    const collector = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        exported.push(Buffer.concat(parts).toString("latin1"));
        response.setHeader("content-type", "application/json").end("{}");
      });
    });
    collector.listen(0, "127.0.0.1");
    await once(collector, "listening");
    const traced = await kit.startProxy({
      GANGLION_INSTANCE: "mcp-proxy-3",
      GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
      GANGLION_LOG_LEVEL: "debug",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    });
    const session = await bound();
    const canary = `cnry_${randomUUID()}`;
    const client = await kit.client(McpProxyServiceService, "harness", "harness-1", traced.listening.addr);
    const request = {
      mcpServerName: "demo",
      name: "echo",
      inputJson: Buffer.from(JSON.stringify({ message: canary })),
      key: newId("sevt"),
      timeout: undefined,
      acknowledgedKeys: [],
    };
    await client.callTool(request, { metadata: { "ganglion-session-token": session.token } });
    await failureOf(client.callTool(request, { metadata: { "ganglion-session-token": `${canary}-token` } }));
    const metrics = await (await fetch(`http://${traced.listening.admin_addr}/metrics`)).text();
    traced.process.kill("SIGTERM");
    assert.equal(await traced.exit, 0);
    collector.close();
    const everything = { spans: exported.join("\n"), metrics, log: traced.output() };
    assert.match(everything.spans, /CallTool/);
    assert.match(metrics, /ganglion_mcp_proxy_requests_total/);
    for (const [where, text] of Object.entries(everything)) {
      for (const secret of [canary, session.token, upstream.token]) {
        for (const form of [
          secret,
          Buffer.from(secret).toString("base64"),
          Buffer.from(secret).toString("hex"),
        ])
          assert.equal(text.includes(form), false, where);
      }
    }
    // The way from the log's event to the audit log is in both.
    assert.match(traced.output(), /"proxy_request_id":"req_/);
  });

  it("an error of the database shows neither statement nor values, to nobody [A139]", async () => {
    const session = await bound();
    await list(session);
    const canary = `canary-${randomUUID()}`;
    const call = (key: string) =>
      kit.mcp().then((mcp) =>
        mcp.callTool(
          {
            mcpServerName: "demo",
            name: "echo",
            inputJson: Buffer.from(JSON.stringify({ message: canary })),
            key,
            timeout: undefined,
            acknowledgedKeys: [],
          },
          { metadata: { "ganglion-session-token": session.token } },
        ),
      );
    const constraint = "CHECK (call_key NOT LIKE '%canary%')";
    await kit.sql(
      "ganglion_owner",
      `ALTER TABLE proxy.calls ADD CONSTRAINT no_canary ${constraint} NOT VALID`,
    );
    try {
      const error = await failureOf(call(`sevt_${canary.replaceAll("-", "_")}`));
      assert.equal(error.reason, "AUDIT_UNAVAILABLE");
      assert.equal(JSON.stringify([error.message, error.metadata]).includes("canary"), false);
    } finally {
      await kit.sql("ganglion_owner", "ALTER TABLE proxy.calls DROP CONSTRAINT no_canary");
    }
    const output = kit.service.output();
    assert.equal(output.includes(canary), false);
    assert.doesNotMatch(output, /INSERT INTO|SELECT |UPDATE proxy|violates/);
    await call(newId("sevt"));
  });

  it("a killed process: its successor opens the log anew and the folder lacks nothing [A143]", async () => {
    await list(await bound());
    kit.service.process.kill("SIGKILL");
    await kit.service.exit;
    await kit.restartProxy();
    await list(await bound());
    const lines = await stored();
    followChain(lines, START);
    sameLines(kept(), lines);
    const boots = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "log_open");
    assert.equal(new Set(boots.map(({ boot_id: id }) => id)).size, boots.length);
  });

  it("a record that was altered since the last checkpoint is not signed, and that is recorded [A145]", async () => {
    const client = await audit();
    await client.createCheckpoint({});
    await list(await bound());
    const alter = (from: string, to: string) =>
      kit.sql(
        "ganglion_owner",
        `UPDATE proxy.audit_records SET reason = '${to}' WHERE reason = '${from}'
         AND sequence > (SELECT max(size) FROM proxy.audit_checkpoints) RETURNING sequence`,
      );
    const [altered] = await alter("ok", "not so");
    const error = await failureOf(client.createCheckpoint({}));
    assert.deepEqual([error.code, error.reason], ["DATA_LOSS", "CHECKPOINT_REFUSED"]);
    const last = JSON.parse((await stored()).at(-1) as string);
    assert.deepEqual([last.kind, last.reason], ["anomaly", "CHECKPOINT_REFUSED"]);
    assert.equal(last.detail, `record ${altered.sequence} was altered`);
    await alter("not so", "ok");
    assert.ok((await client.createCheckpoint({})).checkpoint);
  });

  it("a database that was set back does not get another checkpoint for what was signed [A145]", async () => {
    const client = await audit();
    await client.createCheckpoint({});
    const [gone] = await kit.sql(
      "ganglion_owner",
      "DELETE FROM proxy.audit_checkpoints WHERE size = (SELECT max(size) FROM proxy.audit_checkpoints) RETURNING *",
    );
    await list(await bound());
    assert.equal((await failureOf(client.createCheckpoint({}))).reason, "CHECKPOINT_REFUSED");
    // The successor knows it from the file.
    await kit.restartProxy();
    const after = await kit.client(AuditServiceService, "operator");
    assert.equal((await failureOf(after.createCheckpoint({}))).reason, "CHECKPOINT_REFUSED");
    await kit.sql("ganglion_owner", "INSERT INTO proxy.audit_checkpoints VALUES ($1, $2, $3, $4, $5, $6)", [
      gone.size,
      gone.head_hash,
      gone.prev,
      gone.digest,
      gone.note,
      gone.created_at,
    ]);
    assert.ok((await after.createCheckpoint({})).checkpoint);
  });
});
