import assert from "node:assert/strict";
import pg from "pg";
import { createLedger } from "../../../services/mcp-proxy/audit/ledger.ts";
import { recoverRequests } from "../../../services/mcp-proxy/audit/recover.ts";
import type { WrittenRow } from "../../../services/mcp-proxy/audit/written-row.ts";
import { followChain, GENESIS } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { blankRecord, type RecordKind } from "../../../services/mcp-proxy/domain/new-record.ts";
import type { Guard } from "../../../services/mcp-proxy/domain/ports.ts";
import { migrate } from "../../../services/mcp-proxy/store/migrate.ts";
import { endPool } from "../../kit/end-pool.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import { until } from "../../kit/until.ts";

const GUARD: Guard = {
  tokenHash: Buffer.alloc(32, 1),
  tokenMac: Buffer.alloc(32, 2),
  bindingMac: Buffer.alloc(32, 3),
};

describe("records that wait for the log's head together", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let owner: pg.Client;
  let pool: pg.Pool;

  before(async () => {
    postgres = await startTestPostgres();
    await migrate(postgres.connection("ganglion_owner"));
    owner = new pg.Client(postgres.connection("ganglion_owner"));
    await owner.connect();
    pool = new pg.Pool(postgres.connection("ganglion_proxy"));
    const { tokenHash, tokenMac, bindingMac } = GUARD;
    await owner.query(
      "INSERT INTO proxy.bindings VALUES ('sesn_1', 'wrkspc_default', '{}', '[]', '{}', $1)",
      [bindingMac],
    );
    await owner.query("SELECT proxy.raise_fence('sesn_1', 1, false)");
    await owner.query(
      `INSERT INTO proxy.tokens (token_hash, token_id, session_id, epoch, audience, spiffe_id, mac)
       VALUES ($1, 'tok_1', 'sesn_1', 1, 'harness', 'x', $2)`,
      [tokenHash, tokenMac],
    );
  });
  after(async () => {
    if (pool) await endPool(pool);
    await owner?.end();
    await postgres?.stop();
  });

  it("are each settled and kept for themselves: one that its guard refuses takes its dispatch with it, and no other's", async () => {
    const batches: (readonly WrittenRow[])[] = [];
    const keep = async (rows: readonly WrittenRow[]) => void batches.push(rows);
    const ledger = createLedger(pool, { instance: "i", bootId: "b" }, { keep });
    const record = (kind: RecordKind, id: string) => ({ ...blankRecord(kind, id), session_id: "sesn_1" });
    const together = (id: string, guard: Guard) =>
      ledger.writeTogether({ ...record("decision", id), effect: "allow" }, guard, record("dispatch", id));
    const refused = { ...GUARD, tokenMac: Buffer.alloc(32) };

    await owner.query("BEGIN; SELECT FROM proxy.audit_head FOR UPDATE");
    // The first one waits for the head, the others for the first one.
    const written = [
      ledger.write(record("anomaly", "req_0")),
      together("req_1", refused),
      together("req_2", GUARD),
      ledger.write({ ...record("decision", "req_3"), effect: "deny" }),
      together("req_4", GUARD),
      ledger.write({ ...record("decision", "req_5"), effect: "allow" }, refused),
    ];
    await owner.query("COMMIT");
    const tampered = "ROW_TAMPERED";
    const none = undefined;
    assert.deepEqual(await Promise.all(written), [none, tampered, none, none, none, tampered]);

    const { rows } = await owner.query(
      "SELECT kind, request_id, proxy.audit_line(r) AS line FROM proxy.audit_records r ORDER BY sequence",
    );
    assert.deepEqual(
      rows.map(({ kind, request_id: id }) => `${kind} ${id}`),
      [
        "anomaly req_0",
        ...["decision req_2", "decision req_3", "decision req_4"],
        ...["dispatch req_2", "dispatch req_4"],
      ],
    );
    const lines = rows.map(({ line }) => line as string);
    assert.equal(followChain(lines, { sequence: 0n, hash: GENESIS }).sequence, 6n);
    assert.equal(batches.length, 2);
    assert.deepEqual(
      batches.flat().flatMap(({ line }) => line ?? []),
      lines,
    );
    const open = await owner.query("SELECT request_id, is_dispatched FROM proxy.open_requests ORDER BY 1");
    assert.deepEqual(open.rows, [
      { request_id: "req_2", is_dispatched: true },
      { request_id: "req_4", is_dispatched: true },
    ]);
  });

  it("a call is claimed and dispatched in one, or neither: not under a key that is known, not without its guard [L4] [L6]", async () => {
    const ledger = createLedger(pool, { instance: "i", bootId: "b" });
    const record = (kind: RecordKind, id: string) => ({ ...blankRecord(kind, id), session_id: "sesn_1" });
    const begin = (callKey: string, requestId: string, guard = GUARD) => {
      const claim = { sessionId: "sesn_1", callKey, epoch: 1n, requestDigest: Buffer.alloc(32), requestId };
      const dispatch = { record: record("dispatch", requestId), isRepeatable: true };
      const decision = { ...record("decision", requestId), effect: "allow" as const };
      return ledger.writeClaimAndDispatch(decision, guard, claim, dispatch);
    };
    assert.deepEqual(await begin("sevt_1", "req_c1"), { isClaimed: true });
    assert.deepEqual(await begin("sevt_1", "req_c2"), { isClaimed: false });
    const refused = { ...GUARD, tokenMac: Buffer.alloc(32) };
    assert.deepEqual(await begin("sevt_2", "req_c3", refused), { refusal: "ROW_TAMPERED", isClaimed: false });
    const { rows: records } = await owner.query(
      "SELECT kind, request_id FROM proxy.audit_records WHERE request_id LIKE 'req_c%' ORDER BY sequence",
    );
    assert.deepEqual(records, [
      { kind: "decision", request_id: "req_c1" },
      { kind: "dispatch", request_id: "req_c1" },
      { kind: "decision", request_id: "req_c2" },
    ]);
    const { rows: calls } = await owner.query(
      "SELECT call_key, state, is_repeatable, request_id FROM proxy.calls",
    );
    assert.deepEqual(calls, [
      { call_key: "sevt_1", state: "dispatched", is_repeatable: true, request_id: "req_c1" },
    ]);
  });

  it("a request is closed once: neither a recovery after its outcome, nor anything after its recovery [A143]", async () => {
    const own = { instance: "i", bootId: "b" };
    const ledger = createLedger(pool, own);
    const record = (kind: RecordKind, id: string) => ({ ...blankRecord(kind, id), session_id: "sesn_2" });
    for (const id of ["req_a", "req_b"]) {
      await ledger.write({ ...record("decision", id), effect: "allow" });
    }
    // Somebody believes the process dead, and it goes on.
    const recovered = await recoverRequests(
      pool,
      { instance: "other", bootId: "c" },
      new Map([["req_a", false]]),
    );
    assert.equal(recovered.length, 1);
    const late = { code: "UNAVAILABLE", reason: "AUDIT_UNAVAILABLE" };
    await assert.rejects(ledger.write(record("dispatch", "req_a")), late);
    await assert.rejects(ledger.write(record("outcome", "req_a")), late);
    const end = { sessionId: "sesn_2", callKey: "sevt_1", requestId: "req_a", result: Buffer.alloc(1) };
    await assert.rejects(ledger.writeEnd(record("outcome", "req_a"), end), late);

    // A call that was only claimed stays so: nothing was sent, and its key may be run again.
    const claim = { sessionId: "sesn_1", callKey: "sevt_2", epoch: 1n, requestId: "req_c" };
    const allowed = { ...record("decision", "req_c"), session_id: "sesn_1", effect: "allow" as const };
    const claimed = await ledger.writeAndClaim(allowed, GUARD, { ...claim, requestDigest: Buffer.alloc(32) });
    assert.deepEqual(claimed, { isClaimed: true });
    await recoverRequests(pool, { instance: "other", bootId: "c" }, new Map([["req_c", false]]));
    const call = { sessionId: "sesn_1", callKey: "sevt_2", isRepeatable: false };
    await assert.rejects(ledger.writeDispatch(record("dispatch", "req_c"), call), late);
    const { rows: calls } = await owner.query("SELECT state FROM proxy.calls WHERE call_key = 'sevt_2'");
    assert.deepEqual(calls, [{ state: "claimed" }]);

    // An outcome that waits longer than its process does comes through before the recovery that it asked for.
    await owner.query("BEGIN; SELECT FROM proxy.audit_head FOR UPDATE");
    const outcome = ledger.write(record("outcome", "req_b"));
    await waiting(1);
    const recovery = recoverRequests(pool, own, new Map([["req_b", false]]));
    await waiting(2);
    await owner.query("COMMIT");
    await outcome;
    assert.deepEqual(await recovery, []);

    const { rows } = await owner.query(
      "SELECT kind, request_id FROM proxy.audit_records WHERE session_id = 'sesn_2' ORDER BY request_id, sequence",
    );
    assert.deepEqual(
      rows.map(({ kind, request_id: id }) => `${kind} ${id}`),
      ["decision req_a", "recovery req_a", "decision req_b", "outcome req_b"],
    );
  });

  /** As soon as that many wait for the head. */
  async function waiting(count: number): Promise<void> {
    // The proxy's own role sees its own connections, and no transaction keeps what it saw first.
    const text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%write_%'";
    const look = async () => ((await pool.query(text)).rowCount ?? 0) >= count;
    await until(look, `${count} that wait for the head`);
  }
});
