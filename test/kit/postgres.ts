import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { DATABASE_ROLES, type DatabaseRole } from "../../services/cli/up/postgres-cluster.ts";
import { type PostgresServer, startPostgres } from "../../services/cli/up/postgres-server.ts";
import { ensureSystemUser, type SystemUser } from "../../services/cli/up/system-user.ts";
import {
  type Authority,
  createAuthority,
  type IssuedCertificate,
  issueCertificate,
} from "../../services/common/tls/issue-certificate.ts";

/** A PostgreSQL of its own for one test file. */
export interface TestPostgres {
  readonly server: PostgresServer;
  /** The authority that signed the server's and the roles' certificates; tests may issue more from it. */
  readonly authority: Authority;
  /** Folder with ca.pem, cert.pem, key.pem of that role, as a service finds it in GANGLION_TLS_DIR. */
  tlsDir(role: DatabaseRole): string;
  /** What `pg` needs to log in as that role. */
  connection(role: DatabaseRole): ClientConfig;
  /** The variables a service process needs to log in as that role. */
  env(role: DatabaseRole): Record<string, string>;
  /** Starts the server again on the same data and port, after it was stopped or killed. */
  restart(): Promise<void>;
  /** Stops the server and removes all its files. */
  stop(): Promise<void>;
}

/**
 * startTestPostgres starts the same embedded server that `ganglion up` uses, empty, with certificate logins of a
 * run-time authority, in a temporary folder. It dies with the test process.
 */
export async function startTestPostgres(
  options: { authority?: Authority; onLog?: (line: string) => void } = {},
): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "ganglion-test-pg-"));
  chmodSync(folder, 0o711);
  const user = process.getuid?.() === 0 ? ensureSystemUser("ganglion-pg") : undefined;
  const authority = options.authority ?? (await createAuthority());
  const identities = new Map<DatabaseRole, IssuedCertificate>();
  const dirOf = (name: string) => join(folder, "tls", name);
  await writeIdentity(dirOf("postgres"), authority, "postgres", user);
  for (const role of DATABASE_ROLES) identities.set(role, await writeIdentity(dirOf(role), authority, role));
  const run = {
    dataDir: join(folder, "data"),
    tlsDir: dirOf("postgres"),
    user,
    diesWithParent: true,
    onLog: options.onLog,
  };
  const start = (port: number) => startPostgres({ ...run, port });
  let server = await start(0);
  return {
    get server() {
      return server;
    },
    authority,
    tlsDir: dirOf,
    connection: (role) => {
      const { certPem, keyPem } = identities.get(role) as IssuedCertificate;
      const ssl = { ca: authority.certPem, cert: certPem, key: keyPem, minVersion: "TLSv1.3" as const };
      return { host: server.host, port: server.port, database: server.database, user: role, ssl };
    },
    env: (role) => ({
      PGHOST: server.host,
      PGPORT: String(server.port),
      PGDATABASE: server.database,
      PGUSER: role,
      GANGLION_TLS_DIR: dirOf(role),
    }),
    restart: async () => {
      server = await start(server.port);
    },
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function writeIdentity(
  dir: string,
  authority: Authority,
  cn: string,
  owner?: SystemUser,
): Promise<IssuedCertificate> {
  const identity = await issueCertificate(authority, {
    service: serviceOf(cn),
    instance: `${serviceOf(cn)}-1`,
    commonName: cn,
  });
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "ca.pem"), authority.certPem);
  writeFileSync(join(dir, "cert.pem"), identity.certPem);
  writeFileSync(join(dir, "key.pem"), identity.keyPem, { mode: 0o600 });
  if (owner) chownSync(join(dir, "key.pem"), owner.uid, owner.gid);
  return identity;
}

function serviceOf(cn: string): string {
  const services: Record<string, string> = {
    ganglion_session: "session",
    ganglion_proxy: "mcp-proxy",
    ganglion_owner: "operator",
  };
  return services[cn] ?? cn;
}
