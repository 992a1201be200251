import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { DATABASE_ROLES } from "../../../services/cli/up/postgres-cluster.ts";
import { evictPostmaster } from "../../../services/cli/up/postgres-eviction.ts";
import {
  type Authority,
  createAuthority,
  issueCertificate,
} from "../../../services/common/tls/issue-certificate.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";

describe("embedded PostgreSQL", () => {
  let postgres: TestPostgres;
  const log: string[] = [];

  before(async function () {
    this.timeout(30_000);
    postgres = await startTestPostgres({ onLog: (line) => log.push(line) });
  });
  after(() => postgres.stop());

  const query = async (config: pg.ClientConfig, text: string, values: unknown[] = []) => {
    const client = new pg.Client(config);
    // A server that goes away tells idle clients by an 'error' event.
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const loginWith = async (authority: Authority, cn: string, user: string) => {
    const { certPem, keyPem } = await issueCertificate(authority, {
      service: "harness",
      instance: "harness-1",
      commonName: cn,
    });
    const ssl = { ca: postgres.authority.certPem, cert: certPem, key: keyPem };
    return query({ ...postgres.connection("ganglion_owner"), user, ssl }, "SELECT 1");
  };

  for (const role of DATABASE_ROLES) {
    it(`lets ${role} in by its certificate, over TLS 1.3, without a password and without superuser rights`, async () => {
      const rows = await query(
        postgres.connection(role),
        "SELECT current_user::text AS me, version, usesuper FROM pg_stat_ssl JOIN pg_user ON usename = current_user WHERE pid = pg_backend_pid()",
      );
      assert.deepEqual(rows, [{ me: role, version: "TLSv1.3", usesuper: false }]);
    });
  }

  it("refuses every login that is not a role with its own certificate", async () => {
    const refused = { code: "28000" };
    await assert.rejects(loginWith(postgres.authority, "harness", "ganglion_session"), refused);
    await assert.rejects(loginWith(postgres.authority, "ganglion_session", "ganglion_owner"), refused);
    await assert.rejects(loginWith(postgres.authority, "postgres", "postgres"), refused);
    await assert.rejects(
      loginWith(await createAuthority(), "ganglion_owner", "ganglion_owner"),
      /unknown ca|alert/i,
    );
    const { ssl, ...plain } = postgres.connection("ganglion_owner");
    assert.ok(ssl);
    await assert.rejects(query(plain, "SELECT 1"), refused);
    await assert.rejects(query({ ...plain, ssl: { ca: postgres.authority.certPem } }, "SELECT 1"), refused);
    await assert.rejects(
      query({ ...postgres.connection("ganglion_owner"), database: "postgres" }, "SELECT 1"),
      refused,
    );
  });

  it("runs under an unprivileged user, in one process tree of its own", () => {
    const status = readFileSync(`/proc/${postgres.server.pid}/status`, "utf8");
    const uid = /^Uid:\s+(\d+)/m.exec(status)?.[1];
    assert.notEqual(uid, "0");
  });

  it("logs neither the statement nor the values of a query that fails", async () => {
    const owner = postgres.connection("ganglion_owner");
    await query(owner, "CREATE SCHEMA IF NOT EXISTS t");
    await query(owner, "CREATE TABLE t.keys (id text PRIMARY KEY)");
    await query(owner, "INSERT INTO t.keys VALUES ($1)", ["planted-value"]);
    await assert.rejects(query(owner, "INSERT INTO t.keys VALUES ($1)", ["planted-value"]), {
      code: "23505",
    });
    await assert.rejects(query(owner, "SELECT 'planted-value'::int"), { code: "22P02" });
    await query(owner, "DROP TABLE t.keys");
    assert.ok(
      log.some((line) => line.includes("ready to accept connections")),
      "the log was read at all",
    );
    assert.deepEqual(
      log.filter((line) => /planted-value|duplicate key/.test(line)),
      [],
    );
  });

  it("comes back with its data after SIGKILL, on the same port", async () => {
    const owner = postgres.connection("ganglion_owner");
    await query(owner, "CREATE TABLE t.kept (n int)");
    await query(owner, "INSERT INTO t.kept VALUES (7)");
    process.kill(postgres.server.pid, "SIGKILL");
    assert.equal((await postgres.server.exited).signal, "SIGKILL");
    await postgres.restart();
    assert.deepEqual(await query(owner, "SELECT n FROM t.kept"), [{ n: 7 }]);
  });

  it("replaces a server that its crashed starter left behind", async () => {
    const left = postgres.server;
    await postgres.restart();
    assert.equal((await left.exited).code, 0);
    assert.notEqual(postgres.server.pid, left.pid);
  });

  it("dies with the process that started it when told so", async () => {
    const kit = new URL("../../kit/postgres.ts", import.meta.url).href;
    const program = `const { startTestPostgres } = await import('${kit}');
      const { server } = await startTestPostgres(); console.log(server.port);`;
    const tmp = mkdtempSync(join(tmpdir(), "ganglion-orphan-"));
    chmodSync(tmp, 0o711);
    const starter = spawn(process.execPath, ["--input-type=module", "-e", program], {
      env: { ...process.env, TMPDIR: tmp },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [port] = await once(createInterface({ input: starter.stdout }), "line");
    const socket = connect(Number(port), "127.0.0.1");
    await once(socket, "connect");
    starter.kill("SIGKILL");
    await once(socket, "close");
    // The connection ends first; wait for the last of its processes before the files go.
    await evictPostmaster(join(tmp, readdirSync(tmp)[0] ?? "", "data"));
    rmSync(tmp, { recursive: true });
  }).timeout(20_000);
});
