import { userInfo } from "node:os";
import type { ExternalPostgres, ExternalVault } from "./supervisor-options.ts";

/** Servers that the shell names instead of the embedded ones. */
export interface OutsideServers {
  readonly postgres?: ExternalPostgres;
  readonly vault?: ExternalVault;
}

/** outsideServers reads PG… and VAULT_… of the shell's environment. Only `up` reads it; services never see it. */
export function outsideServers(env: NodeJS.ProcessEnv, read: (path: string) => string): OutsideServers {
  return {
    ...(env.PGHOST ? { postgres: readPostgres(env, env.PGHOST, read) } : {}),
    ...(env.VAULT_ADDR ? { vault: readVault(env, env.VAULT_ADDR, read) } : {}),
  };
}

function readPostgres(
  env: NodeJS.ProcessEnv,
  host: string,
  read: (path: string) => string,
): ExternalPostgres {
  return {
    host,
    port: Number(env.PGPORT || 5432),
    database: env.PGDATABASE || "ganglion",
    user: env.PGUSER || userInfo().username,
    ...(env.PGPASSWORD ? { password: env.PGPASSWORD } : {}),
    ...(env.PGSSLROOTCERT ? { caPem: read(env.PGSSLROOTCERT) } : {}),
  };
}

function readVault(env: NodeJS.ProcessEnv, addr: string, read: (path: string) => string): ExternalVault {
  return {
    addr,
    ...(env.VAULT_CACERT ? { caPem: read(env.VAULT_CACERT) } : {}),
    ...(env.VAULT_NAMESPACE ? { namespace: env.VAULT_NAMESPACE } : {}),
    ...(env.VAULT_ROLE_ID ? { roleId: env.VAULT_ROLE_ID } : {}),
    ...(env.VAULT_SECRET_ID ? { secretId: env.VAULT_SECRET_ID } : {}),
    ...(env.VAULT_TOKEN ? { token: env.VAULT_TOKEN } : {}),
  };
}
