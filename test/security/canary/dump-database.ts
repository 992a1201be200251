import pg from "pg";
import { readMesh } from "../../../services/cli/up/mesh-files.ts";
import type { TestMesh } from "../../kit/mesh.ts";

/** Role of a service's certificate, and the schema that is its own. */
const OWNERS = [
  ["session-1", "ganglion_session", "session"],
  ["mcp-proxy-1", "ganglion_proxy", "proxy"],
] as const;

/** Every row that the services of a mesh have in PostgreSQL, as text. */
export async function dumpDatabase(mesh: TestMesh): Promise<{ text: string; tables: number }> {
  const port = readMesh(mesh.files).ports.postgres;
  let text = "";
  let tables = 0;
  for (const [holder, user, schema] of OWNERS) {
    const { ca, cert, key } = mesh.tls(holder).material();
    const ssl = { ca, cert, key, rejectUnauthorized: true };
    const client = new pg.Client({ host: "127.0.0.1", port, database: "ganglion", user, ssl });
    await client.connect();
    try {
      const { rows } = await client.query<{ name: string }>(
        `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS name FROM information_schema.tables
         WHERE table_schema = $1 AND has_table_privilege(quote_ident(table_schema) || '.' || quote_ident(table_name), 'SELECT')`,
        [schema],
      );
      for (const { name } of rows) {
        const found = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
        text += `${name}\n${found.rows.map(({ row }) => row).join("\n")}\n`;
        tables += 1;
      }
    } finally {
      await client.end();
    }
  }
  return { text, tables };
}
