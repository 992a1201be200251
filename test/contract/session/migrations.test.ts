import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import pg from "pg";
import { migrate as migrateProxy } from "../../../services/mcp-proxy/store/migrate.ts";
import { migrate } from "../../../services/session/store/migrate.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";

describe("migrations of the session service", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startTestPostgres();
    await migrateProxy(postgres.connection("ganglion_owner"));
  });
  after(() => postgres?.stop());

  const sql = async (text: string) => {
    const client = new pg.Client(postgres.connection("ganglion_owner"));
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };

  it("three at once, on an empty database, take turns: each file is applied once", async () => {
    const owner = postgres.connection("ganglion_owner");
    await Promise.all([migrate(owner), migrate(owner), migrate(owner)]);
    const rows = await sql("SELECT name, applied_at FROM session.migrations ORDER BY name");
    const files = await readdir(new URL("../../../services/session/migrations/", import.meta.url));
    assert.deepEqual(
      rows.map(({ name }) => name),
      files.sort(),
    );
    await migrate(owner);
    assert.deepEqual(await sql("SELECT name, applied_at FROM session.migrations ORDER BY name"), rows);
  });

  it("a lock that somebody holds is waited for, and a killed holder frees it", async () => {
    const holder = new pg.Client(postgres.connection("ganglion_owner"));
    holder.on("error", () => {});
    await holder.connect();
    await holder.query("SELECT pg_advisory_lock(7381240560101)");
    let isDone = false;
    const waiting = migrate(postgres.connection("ganglion_owner")).then(() => {
      isDone = true;
    });
    for (;;) {
      const blocked = await sql(
        "SELECT pid FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0",
      );
      if (blocked.length > 0) break;
    }
    assert.equal(isDone, false);
    const { processID } = holder as unknown as { processID: number };
    process.kill(processID, "SIGTERM");
    await waiting;
  });

  it("a schema that is newer than the code is left alone, and said so", async () => {
    await sql("INSERT INTO session.migrations (name, sha256) VALUES ('9999_future.sql', 'x')");
    await assert.rejects(
      migrate(postgres.connection("ganglion_owner")),
      /newer than this version.*9999_future\.sql/,
    );
    await sql("DELETE FROM session.migrations WHERE name = '9999_future.sql'");
    await migrate(postgres.connection("ganglion_owner"));
  });

  it("a file that changed after it was applied is an error", async () => {
    const [{ sha256 }] = await sql("SELECT sha256 FROM session.migrations WHERE name = '0001_session.sql'");
    await sql("UPDATE session.migrations SET sha256 = 'other' WHERE name = '0001_session.sql'");
    await assert.rejects(migrate(postgres.connection("ganglion_owner")), /changed after it was applied/);
    await sql(`UPDATE session.migrations SET sha256 = '${sha256}' WHERE name = '0001_session.sql'`);
  });
});
