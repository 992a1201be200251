import { randomBytes } from "node:crypto";
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Client, type ClientConfig, escapeIdentifier, escapeLiteral } from "pg";
import { migrate as migrateProxy } from "../../mcp-proxy/store/migrate.ts";
import { migrate as migrateSession } from "../../session/store/migrate.ts";
import { KeptServer } from "./kept-server.ts";
import { openLog } from "./log-files.ts";
import { makeFolder } from "./mesh-files.ts";
import { DATABASE } from "./postgres-cluster.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import type { ExternalPostgres } from "./supervisor-options.ts";
import type { SystemUser } from "./system-user.ts";

/** The database of the mesh, ours or somebody else's. What services are told of it is known before it runs. */
export interface PostgresPart {
  /** Starts it, where it is ours, and brings its schemas up to date. */
  start(): Promise<void>;
  /** Settings for a service whose role that is. */
  env(role: ServiceRole): Record<string, string>;
  /** Login for descriptor 3; undefined where certificates are the login. */
  login(role: ServiceRole): { user: string; password: string; ca_pem?: string } | undefined;
  /** The embedded server, to be watched and stopped; undefined for an external one. */
  readonly server: KeptServer<PostgresServer> | undefined;
}

/** Database roles of services. */
export type ServiceRole = "ganglion_session" | "ganglion_proxy";

const SERVICE_ROLES: readonly ServiceRole[] = ["ganglion_session", "ganglion_proxy"];

/** embeddedPostgres is a PostgreSQL in the state folder. */
export function embeddedPostgres(options: {
  state: string;
  port: number;
  tlsDir: string;
  /** Certificate of the role that owns the schemas. */
  ownerTlsDir: string;
  user: SystemUser | undefined;
  logFile: string;
}): PostgresPart {
  const log = openLog(options.logFile);
  // Its user passes through this folder to its own.
  makeFolder(join(options.state, "postgres"), 0o711);
  const server = new KeptServer("postgres", () =>
    startPostgres({
      dataDir: join(options.state, "postgres", "data"),
      port: options.port,
      tlsDir: options.tlsDir,
      ...(options.user ? { user: options.user } : {}),
      onLog: (line) => void writeSync(log, `${line}\n`),
    }),
  );
  const read = (file: string) => readFileSync(join(options.ownerTlsDir, file), "utf8");
  return {
    server,
    start: async () => {
      await server.start();
      await migrateAll({
        host: "127.0.0.1",
        port: options.port,
        database: DATABASE,
        user: "ganglion_owner",
        ssl: { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem"), minVersion: "TLSv1.3" },
      });
    },
    env: (role) => ({
      PGHOST: "127.0.0.1",
      PGPORT: String(options.port),
      PGDATABASE: DATABASE,
      PGUSER: role,
    }),
    login: () => undefined,
  };
}

/** externalPostgres is one that is already there: roles with random passwords and the schemas are made in it. */
export function externalPostgres(external: ExternalPostgres): PostgresPart {
  if (!external.caPem) {
    throw new Error(
      "PGHOST needs PGSSLROOTCERT: services speak to PostgreSQL over TLS only, and must know its authority",
    );
  }
  const connection: ClientConfig = {
    host: external.host,
    port: external.port,
    database: external.database,
    user: external.user,
    ...(external.password === undefined ? {} : { password: external.password }),
    ssl: { ca: external.caPem, minVersion: "TLSv1.3" },
  };
  const passwords = new Map(SERVICE_ROLES.map((role) => [role, randomBytes(32).toString("base64url")]));
  return {
    server: undefined,
    start: async () => {
      const client = new Client(connection);
      await client.connect();
      try {
        for (const role of SERVICE_ROLES)
          await ensureRole(client, role, passwords.get(role) as string, external);
      } finally {
        await client.end();
      }
      await migrateAll(connection);
    },
    env: (role) => ({
      PGHOST: external.host,
      PGPORT: String(external.port),
      PGDATABASE: external.database,
      PGUSER: role,
    }),
    login: (role) => ({
      user: role,
      password: passwords.get(role) as string,
      ...(external.caPem ? { ca_pem: external.caPem } : {}),
    }),
  };
}

async function ensureRole(client: Client, role: ServiceRole, password: string, external: ExternalPostgres) {
  const { rowCount } = await client.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [role]);
  // Neither names nor passwords can be parameters of these statements.
  const verb = rowCount === 0 ? "CREATE" : "ALTER";
  await client.query(`${verb} ROLE ${escapeIdentifier(role)} LOGIN PASSWORD ${escapeLiteral(password)}`);
  const database = escapeIdentifier(external.database);
  await client.query(`GRANT CONNECT ON DATABASE ${database} TO ${escapeIdentifier(role)}`);
}

/** The session's schema calls a function of the proxy's. */
async function migrateAll(connection: ClientConfig): Promise<void> {
  await migrateProxy(connection);
  await migrateSession(connection);
}
