import assert from "node:assert/strict";
import pg from "pg";
import { createLedger } from "../../../services/mcp-proxy/audit/ledger.ts";
import { type LeftOpen, settleLeftOpen } from "../../../services/mcp-proxy/audit/settle-left-open.ts";
import type { WrittenRow } from "../../../services/mcp-proxy/audit/written-row.ts";
import { blankRecord, type RecordKind } from "../../../services/mcp-proxy/domain/new-record.ts";
import type { CallClaim, CallJournal, Guard, Ledger } from "../../../services/mcp-proxy/domain/ports.ts";
import { createCallStore } from "../../../services/mcp-proxy/store/call-store.ts";
import { migrate } from "../../../services/mcp-proxy/store/migrate.ts";
import { endPool } from "../../kit/end-pool.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import { until } from "../../kit/until.ts";

const WRITER = { instance: "i", bootId: "b" };
const GUARD: Guard = {
  tokenHash: Buffer.alloc(32, 1),
  tokenMac: Buffer.alloc(32, 2),
  bindingMac: Buffer.alloc(32, 3),
};
const UNAVAILABLE = { code: "UNAVAILABLE", reason: "AUDIT_UNAVAILABLE" };

describe("a dispatch that is in the database and could not be kept beside it", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let owner: pg.Client;
  let pool: pg.Pool;
  let ledger: Ledger;
  let leftOpen: LeftOpen;
  let journal: CallJournal;
  let isFileGone = false;
  let settled = Promise.withResolvers<readonly WrittenRow[]>();

  before(async () => {
    postgres = await startTestPostgres();
    await migrate(postgres.connection("ganglion_owner"));
    owner = new pg.Client(postgres.connection("ganglion_owner"));
    await owner.connect();
    // A little longer than the ledger waits: what it gave up does not come true later.
    pool = new pg.Pool({ ...postgres.connection("ganglion_proxy"), statement_timeout: 3000 });
    await owner.query(
      "INSERT INTO proxy.bindings VALUES ('sesn_1', 'wrkspc_default', '{}', '[]', '{}', $1)",
      [GUARD.bindingMac],
    );
    await owner.query("SELECT proxy.raise_fence('sesn_1', 1, false)");
    await owner.query(
      `INSERT INTO proxy.tokens (token_hash, token_id, session_id, epoch, audience, spiffe_id, mac)
       VALUES ($1, 'tok_1', 'sesn_1', 1, 'harness', 'x', $2)`,
      [GUARD.tokenHash, GUARD.tokenMac],
    );
    const keep = async (rows: readonly WrittenRow[]) => settled.resolve(rows);
    leftOpen = settleLeftOpen(pool, WRITER, keep, (error) => settled.reject(error));
    const keepBeside = async () => {
      if (isFileGone) throw new Error("an audit file was removed");
    };
    ledger = createLedger(pool, WRITER, { keep: keepBeside, onUncertain: leftOpen.add });
    journal = createCallStore(pool, WRITER, leftOpen.isUnsent);
  });
  beforeEach(() => {
    isFileGone = false;
    settled = Promise.withResolvers();
  });
  after(async () => {
    leftOpen?.close();
    if (pool) await endPool(pool);
    await owner?.end();
    await postgres?.stop();
  });

  it("was sent by nobody: its key may be run at once, is free later, and the recovery says so [A141] [A143] [L4]", async () => {
    isFileGone = true;
    await assert.rejects(begin("sevt_1", "req_1"), UNAVAILABLE);
    await assert.rejects(begin("sevt_2", "req_2"), UNAVAILABLE);
    isFileGone = false;
    assert.deepEqual(await stored(), ["sevt_1 req_1 dispatched", "sevt_2 req_2 dispatched"]);

    // The caller asks again at once.
    assert.deepEqual(await begin("sevt_1", "req_3"), { isClaimed: false });
    const entry = await journal.find("sesn_1", "sevt_1");
    assert.equal(entry?.state, "claimed");
    assert.ok(entry && (await journal.takeOver(claimOf("sevt_1", "req_3"), entry)));
    const dispatch = { ...record("dispatch", "req_3"), call_key: "sevt_1" };
    const call = { sessionId: "sesn_1", callKey: "sevt_1", isRepeatable: false };
    assert.ok(await ledger.writeDispatch(dispatch, call));

    const rows = await settled.promise;
    assert.equal(rows.length, 2);
    assert.deepEqual(await reasons("req_1", "req_2"), ["recovery not_sent", "recovery not_sent"]);
    assert.deepEqual(await stored(), ["sevt_1 req_3 dispatched"]);
    assert.equal(await journal.find("sesn_1", "sevt_2"), undefined);
  });

  it("stays so when the record of its end fails too", async () => {
    await ledger.writeAndClaim(decision("sevt_4", "req_4"), GUARD, claimOf("sevt_4", "req_4"));
    const call = { sessionId: "sesn_1", callKey: "sevt_4", isRepeatable: false };
    isFileGone = true;
    await assert.rejects(ledger.writeDispatch({ ...record("dispatch", "req_4") }, call), UNAVAILABLE);
    await owner.query("BEGIN; SELECT FROM proxy.audit_head FOR UPDATE");
    try {
      const end = { sessionId: "sesn_1", callKey: "sevt_4", requestId: "req_4", result: null };
      await assert.rejects(ledger.writeEnd(record("outcome", "req_4"), end), UNAVAILABLE);
    } finally {
      await nobodyWaits();
      await owner.query("ROLLBACK");
    }
    isFileGone = false;
    await settled.promise;
    assert.deepEqual(await reasons("req_4"), ["recovery not_sent"]);
    assert.equal(await journal.find("sesn_1", "sevt_4"), undefined);
  });

  it("is unknown when it was the outcome that could not be kept", async () => {
    assert.deepEqual(await begin("sevt_5", "req_5"), { isClaimed: true });
    await owner.query("BEGIN; SELECT FROM proxy.audit_head FOR UPDATE");
    try {
      const end = { sessionId: "sesn_1", callKey: "sevt_5", requestId: "req_5", result: Buffer.alloc(1) };
      await assert.rejects(ledger.writeEnd(record("outcome", "req_5"), end), UNAVAILABLE);
    } finally {
      await nobodyWaits();
      await owner.query("ROLLBACK");
    }
    assert.equal((await journal.find("sesn_1", "sevt_5"))?.state, "dispatched");
    await settled.promise;
    assert.deepEqual(await reasons("req_5"), ["recovery unknown"]);
    assert.equal((await journal.find("sesn_1", "sevt_5"))?.state, "dispatched");
  });

  it("is closed when its decision becomes durable long after it was given up", async () => {
    // A statement of this process whose commit waits for a disk.
    const entry = { record: { ...decision("sevt_6", "req_6"), instance: "i", boot_id: "b" } };
    await owner.query("BEGIN");
    try {
      await owner.query("SELECT FROM proxy.write_records($1)", [JSON.stringify([entry])]);
      leftOpen.add(decision("sevt_6", "req_6"));
      const text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%write_%'";
      const look = async () => (await pool.query(text)).rowCount !== 0;
      await until(look, "somebody who waits for that statement");
    } finally {
      await owner.query("COMMIT");
    }
    await settled.promise;
    assert.deepEqual(await reasons("req_6"), ["recovery not_dispatched"]);
  });

  it("is not known to be unmade when it is an end of a session, which waits for no record", async () => {
    const end = { ...record("decision", "req_7"), operation: "binding.end", effect: "allow" as const };
    isFileGone = true;
    await assert.rejects(ledger.write(end), UNAVAILABLE);
    isFileGone = false;
    await settled.promise;
    assert.deepEqual(await reasons("req_7"), ["recovery unknown"]);
  });

  it("is unknown when it was the outcome of an approved tool, which is sent nowhere", async () => {
    const approval = {
      ...record("decision", "req_9"),
      operation: "approve_tool_pin",
      effect: "allow" as const,
    };
    await ledger.write(approval);
    leftOpen.add({ ...approval, kind: "outcome", effect: "" });
    await settled.promise;
    const { rows } = await owner.query(
      "SELECT reason, upstream_effect FROM proxy.audit_records WHERE request_id = 'req_9' AND kind = 'recovery'",
    );
    assert.deepEqual(rows, [{ reason: "unknown", upstream_effect: "unknown" }]);
  });

  it("is not looked for when it was a denial, which leaves nothing open", () => {
    const denial = { ...record("decision", "req_8"), effect: "deny" as const };
    for (const left of [denial, record("anomaly", "req_8")]) leftOpen.add(left);
    assert.equal(leftOpen.isUnsent("req_8"), false);
  });

  /** As soon as the database has given up what the ledger gave up before. */
  async function nobodyWaits(): Promise<void> {
    const text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%write_%'";
    await until(async () => (await pool.query(text)).rowCount === 0, "a statement's end");
  }

  function record(kind: RecordKind, id: string) {
    return { ...blankRecord(kind, id), session_id: "sesn_1" };
  }

  function decision(callKey: string, id: string) {
    return { ...record("decision", id), call_key: callKey, effect: "allow" as const };
  }

  function claimOf(callKey: string, requestId: string): CallClaim {
    return { sessionId: "sesn_1", callKey, epoch: 1n, requestDigest: Buffer.alloc(32), requestId };
  }

  function begin(callKey: string, id: string) {
    const dispatch = { record: { ...record("dispatch", id), call_key: callKey }, isRepeatable: false };
    return ledger.writeClaimAndDispatch(decision(callKey, id), GUARD, claimOf(callKey, id), dispatch);
  }

  async function stored(): Promise<string[]> {
    const { rows } = await owner.query("SELECT call_key, request_id, state FROM proxy.calls ORDER BY 1");
    return rows.map(({ call_key: key, request_id: id, state }) => `${key} ${id} ${state}`);
  }

  async function reasons(...ids: string[]): Promise<string[]> {
    const { rows } = await owner.query(
      "SELECT kind, reason FROM proxy.audit_records WHERE request_id = ANY ($1) AND kind = 'recovery'",
      [ids],
    );
    return rows.map(({ kind, reason }) => `${kind} ${reason}`);
  }
});
