import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { migrate } from "../../../../services/session/store/migrate.ts";
import { emit, refused, type SessionKit, same, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** What the database itself refuses, and what of it nobody gets to see. */
export function databaseSuite(kit: () => SessionKit): void {
  describe("database", () => {
    const suite = new Suite(kit, "database");
    before(() => suite.create({ initialEvents: [userMessage("x")] }));

    const denied = (text: string) =>
      assert.rejects(kit().sql("ganglion_session", text), (error: Error & { code?: string }) => {
        assert.equal(error.code, "42501", `${text}: ${error.message}`);
        return true;
      });

    it("the service's role can add to the log and read it, and nothing else [A137]", async () => {
      for (const table of ["session.events", "session.events_0"]) {
        await denied(`UPDATE ${table} SET body = body`);
        await denied(`DELETE FROM ${table}`);
        await denied(`TRUNCATE ${table}`);
        await denied(`ALTER TABLE ${table} ADD COLUMN x int`);
        await denied(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
        await denied(`DROP TABLE ${table}`);
      }
      await denied("CREATE TABLE session.x (n int)");
      await denied(
        "CREATE OR REPLACE FUNCTION session.delete_session(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
      );
      await kit().sql("ganglion_session", "SELECT count(*) FROM session.events");
    });

    it("it cannot rewrite what a session belongs to, remove one past the function, or read the proxy's tables [A137]", async () => {
      await denied("UPDATE session.sessions SET workspace_id = 'wrkspc_other'");
      await denied("UPDATE session.sessions SET agent_id = 'x'");
      await denied("DELETE FROM session.sessions");
      await denied("UPDATE session.session_settings SET environment_json = ''");
      await denied("UPDATE session.session_settings SET vault_ids = '{}'");
      await denied("UPDATE session.session_settings SET forked_from = 'x'");
      await denied("UPDATE session.agent_versions SET definition = ''");
      await denied("DELETE FROM session.api_keys");
      await denied("UPDATE session.migrations SET name = 'x'");
      await denied("SELECT * FROM proxy.fences");
      await denied("SELECT * FROM proxy.bindings");
    });

    it("the removing function does not remove a running session and trusts no search path [A137]", async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("x")] });
      const rows = await kit().sql(
        "ganglion_session",
        "SELECT session.delete_session($1, $2) AS is_deleted",
        ["wrkspc_default", id],
      );
      same(rows, [{ is_deleted: false }]);
      const { id: idle } = await suite.create();
      const other = await kit().sql(
        "ganglion_session",
        "SELECT session.delete_session($1, $2) AS is_deleted",
        ["wrkspc_other", idle],
      );
      same(other, [{ is_deleted: false }]);
      const [definer] = await kit().sql(
        "ganglion_owner",
        "SELECT prosecdef, proconfig::text AS config FROM pg_proc WHERE oid = 'session.delete_session(text, text)'::regprocedure",
      );
      same(definer, { prosecdef: true, config: '{"search_path=pg_catalog, pg_temp"}' });
    });

    it("every table that belongs to a workspace says so in its key", async () => {
      const rows = await kit().sql(
        "ganglion_owner",
        `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
         WHERE n.nspname = 'session' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT EXISTS (
           SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'workspace_id' AND a.attnum = ANY (i.indkey))
         ORDER BY 1`,
      );
      same(
        rows.map(({ name }) => name),
        ["harness_instances", "migrations"],
      );
    });

    it("migrations run again change nothing, also two at a time", async () => {
      const owner = kit().postgres.connection("ganglion_owner");
      await Promise.all([migrate(owner), migrate(owner)]);
      const rows = await kit().sql("ganglion_owner", "SELECT name FROM session.migrations ORDER BY name");
      const files = await readdir(new URL("../../../../services/session/migrations/", import.meta.url));
      same(
        rows.map(({ name }) => name),
        files.sort(),
      );
    });

    it("an error of the database shows neither statement nor values, to nobody [A139]", async () => {
      const canary = `canary-${crypto.randomUUID()}`;
      const { id } = await suite.create();
      await emit(suite.client, id, [userMessage(canary, "sevt_c")]);
      await assert.rejects(
        emit(suite.client, id, [userMessage(`${canary} 2`, "sevt_c")]),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
      await kit().sql("ganglion_owner", "REVOKE INSERT ON session.events FROM ganglion_session");
      try {
        await assert.rejects(emit(suite.client, id, [userMessage(canary)]), (error: GanglionError) => {
          same([error.code, error.message], ["INTERNAL", "internal error"]);
          assert.ok(error.metadata.trace_id);
          return true;
        });
      } finally {
        await kit().sql("ganglion_owner", "GRANT INSERT ON session.events TO ganglion_session");
      }
      assert.match(kit().service.output(), /database error 42501/);
      assert.equal(kit().service.output().includes(canary), false);
      assert.doesNotMatch(kit().service.output(), /INSERT INTO|SELECT |UPDATE session/);
      await emit(suite.client, id, [userMessage("works again")]);
    });
  });
}
