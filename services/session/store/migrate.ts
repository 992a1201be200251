import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

const FOLDER = fileURLToPath(new URL("../migrations/", import.meta.url));
// Any constant will do as long as no other migration set of this database uses it.
const LOCK_KEY = "7381240560101";

/**
 * migrate brings the schema `session` up to date. Run it as ganglion_owner, after the proxy's migrations (the
 * session role calls the proxy's fence). Several at once take turns; each file is applied once, in its own
 * transaction, and a file that changed after it was applied is an error, and so is a schema that is newer than the code.
 */
export async function migrate(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(connection);
  // A server that goes away tells idle clients by an 'error' event; the next query fails anyway.
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(${LOCK_KEY})`);
    await client.query("CREATE SCHEMA IF NOT EXISTS session");
    await client.query(
      `CREATE TABLE IF NOT EXISTS session.migrations
         (name text PRIMARY KEY, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
    );
    const files = (await readdir(FOLDER)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
    await refuseNewer(client, files);
    for (const name of files) await apply(client, name);
  } finally {
    // Ends the session and with it the lock.
    await client.end();
  }
}

// Older code would not know what the newer schema asks of it.
async function refuseNewer(client: pg.Client, files: readonly string[]): Promise<void> {
  const { rows } = await client.query("SELECT name FROM session.migrations ORDER BY name");
  const unknown = rows.map(({ name }) => name as string).filter((name) => !files.includes(name));
  if (unknown.length > 0) {
    throw new Error(
      `the schema session is newer than this version of the code: it has ${unknown.join(", ")}`,
    );
  }
}

async function apply(client: pg.Client, name: string): Promise<void> {
  const sql = await readFile(`${FOLDER}${name}`, "utf8");
  const sha256 = createHash("sha256").update(sql).digest("hex");
  const { rows } = await client.query("SELECT sha256 FROM session.migrations WHERE name = $1", [name]);
  if (rows.length > 0) {
    if (rows[0].sha256 !== sha256)
      throw new Error(`migration ${name} of session changed after it was applied`);
    return;
  }
  await client.query("BEGIN");
  try {
    await client.query(sql);
    await client.query("INSERT INTO session.migrations (name, sha256) VALUES ($1, $2)", [name, sha256]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw new Error(`migration ${name} of session failed`, { cause: error });
  }
}
