import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { Pool, type PoolConfig } from "pg";
import { spiffeIdOf } from "../../common/tls/spiffe-id.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";

/** Where the database is and how to log in. */
export interface DatabaseConfig {
  host: string;
  port: number;
  database: string;
  user: string;
  /** Only where the login is not the certificate. */
  password?: string;
  /** Authority of a database that is not the mesh's own. */
  caPem?: string;
  tls: TlsBundle;
}

/** Settings for `pg`: TLS with the bundle's newest certificate at each connect, bounded waits. */
export function connectionConfig(config: DatabaseConfig): PoolConfig {
  const { host, port, database, user, password, caPem, tls } = config;
  return {
    host,
    port,
    database,
    user,
    ...(password === undefined ? {} : { password }),
    // Getters: pg copies these for each new connection, so a renewed certificate is used from then on.
    ssl: {
      get ca() {
        return caPem ?? tls.material().ca;
      },
      get cert() {
        return tls.material().cert;
      },
      get key() {
        return tls.material().key;
      },
      minVersion: "TLSv1.3",
      checkServerIdentity: checkPostgresServer,
    },
    application_name: "ganglion mcp-proxy",
    connectionTimeoutMillis: 2000,
    statement_timeout: 5000,
    query_timeout: 6000,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
  };
}

/** createPool makes the pool of a replica. A lost idle connection is no event: the next call gets a new one. */
export function createPool(config: DatabaseConfig, onIdleError: (error: Error) => void): Pool {
  const pool = new Pool({ ...connectionConfig(config), max: 12, min: 2, idleTimeoutMillis: 60_000 });
  pool.on("error", onIdleError);
  return pool;
}

/** A certificate of the mesh must be the database's: any service's would be good for this machine's name. */
function checkPostgresServer(host: string, certificate: PeerCertificate): Error | undefined {
  const wrongName = checkServerIdentity(host, certificate);
  if (wrongName) return wrongName;
  const isOfMesh = certificate.subjectaltname?.includes("URI:spiffe://ganglion.local/") ?? false;
  if (!isOfMesh || spiffeIdOf(certificate)?.service === "postgres") return undefined;
  return new Error("expected the database of the mesh");
}
