import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { listRecords } from "../../../services/mcp-proxy/audit/record-store.ts";
import { followChain, GENESIS } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { blankRecord } from "../../../services/mcp-proxy/domain/new-record.ts";
import { migrate, migrationNames } from "../../../services/mcp-proxy/store/migrate.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";

const FOLDER = new URL("../../../services/mcp-proxy/migrations/", import.meta.url);
const BEFORE_THE_CHAIN = "0006_audit_chain.sql";

describe("a database from before the audit log was a chain", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;

  before(async () => {
    postgres = await startTestPostgres();
  });
  after(() => postgres?.stop());

  it("has its records chained when it is upgraded, and goes on from there", async () => {
    const owner = new pg.Client(postgres.connection("ganglion_owner"));
    await owner.connect();
    await owner.query("CREATE SCHEMA proxy");
    await owner.query(
      "CREATE TABLE proxy.migrations (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())",
    );
    for (const name of migrationNames().filter((name) => name < BEFORE_THE_CHAIN)) {
      const sql = readFileSync(new URL(name, FOLDER), "utf8");
      await owner.query(sql);
      const sha256 = createHash("sha256").update(sql).digest("hex");
      await owner.query("INSERT INTO proxy.migrations (name, sha256) VALUES ($1, $2)", [name, sha256]);
    }
    const entries = (ids: string[]) =>
      JSON.stringify(
        ids.map((id) => ({
          record: {
            ...blankRecord("decision", id),
            effect: "allow",
            session_id: "sesn_1",
            instance: "i",
            boot_id: "b",
          },
        })),
      );
    await owner.query("SELECT * FROM proxy.write_records($1)", [entries(["req_1", "req_2", "req_3"])]);
    await owner.query("SELECT proxy.raise_fence('sesn_old', 0, true)");

    await migrate(postgres.connection("ganglion_owner"));

    await owner.query("SELECT * FROM proxy.write_records($1)", [entries(["req_4"])]);
    const lines = async () =>
      (
        await owner.query("SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r ORDER BY sequence")
      ).rows.map(({ line }) => line as string);
    const head = followChain(await lines(), { sequence: 0n, hash: GENESIS });
    assert.equal(head.sequence, 4n);
    // What was written before keeps its form; what is written now is of the newest.
    assert.deepEqual(
      (await lines()).map((line) => JSON.parse(line).v),
      [1, 1, 1, 3],
    );
    const ends = async () =>
      (await owner.query("SELECT * FROM proxy.write_session_ends('i', 'b', 10)")).rows.map(({ line }) =>
        JSON.parse(line),
      );
    // What ended before stays as it was; what ends now is recorded once.
    assert.deepEqual(await ends(), []);
    await owner.query("SELECT proxy.raise_fence('sesn_new', 3, true)");
    const [end, ...others] = await ends();
    assert.deepEqual(
      [end.kind, end.session_id, end.epoch, end.record_count, others.length],
      ["session_end", "sesn_new", "3", "0", 0],
    );
    assert.deepEqual(await ends(), []);
    // A process that was there before asks as it always did, and one of now says what it is.
    assert.equal(end.build, "");
    await owner.query("SELECT proxy.raise_fence('sesn_newer', 1, true)");
    const now = await owner.query("SELECT * FROM proxy.write_session_ends('i', 'b', 10, 'ganglion 9')");
    const newer = JSON.parse(now.rows[0].line);
    assert.deepEqual([newer.v, newer.session_id, newer.build], [3, "sesn_newer", "ganglion 9"]);
    await owner.end();
  });

  it("is read on by a process that was there before, when a newer one adds a column", async () => {
    const owner = new pg.Pool({ ...postgres.connection("ganglion_owner"), max: 1 });
    try {
      const read = () => listRecords(owner, { afterSequence: 0n, limit: 10, sessionId: "", requestId: "" });
      const before = await read();
      await owner.query("ALTER TABLE proxy.audit_records ADD COLUMN of_later text NOT NULL DEFAULT ''");
      assert.deepEqual(await read(), before);
      assert.ok(before.length > 3);
      const { hash: _, ...content } = JSON.parse(before[0]?.line ?? "");
      for (const name of Object.keys(content)) assert.ok(name in (before[0] as object), name);
    } finally {
      await owner.end();
    }
  });
});
