import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { Client, type ClientConfig } from "pg";

const FOLDER = new URL("../migrations/", import.meta.url);
const FILE_FORM = /^\d{4}_[a-z0-9_]+\.sql$/;
// Any number, as long as nobody else in this database locks it: "ganp" in ASCII.
const LOCK_KEY = 0x67616e70;

/**
 * migrate brings the schema `proxy` up to date, each numbered file once, in one transaction under an advisory lock.
 * The connection must log in as the schema's owner (ganglion_owner). A file that was applied and changed since is
 * refused: migrations go forward only.
 */
export async function migrate(connection: ClientConfig): Promise<void> {
  const client = new Client(connection);
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [LOCK_KEY]);
    await client.query("CREATE SCHEMA IF NOT EXISTS proxy");
    await client.query(
      "CREATE TABLE IF NOT EXISTS proxy.migrations (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())",
    );
    const { rows } = await client.query<{ name: string; sha256: string }>(
      "SELECT name, sha256 FROM proxy.migrations",
    );
    const applied = new Map(rows.map((row) => [row.name, row.sha256]));
    for (const name of migrationNames()) {
      const sql = readFileSync(new URL(name, FOLDER), "utf8");
      const sha256 = createHash("sha256").update(sql).digest("hex");
      const before = applied.get(name);
      if (before === sha256) continue;
      if (before !== undefined)
        throw new Error(`mcp-proxy migration ${name} was changed after it was applied`);
      await client.query(sql);
      await client.query("INSERT INTO proxy.migrations (name, sha256) VALUES ($1, $2)", [name, sha256]);
    }
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
}

/** Names of the migration files, in order. */
export function migrationNames(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => FILE_FORM.test(name))
    .sort();
}
