import { type SpawnSyncOptions, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { SystemUser } from "./system-user.ts";

/** The one database of the mesh. */
export const DATABASE = "ganglion";

/** The roles that may log in, each by the client certificate whose CN is its name. */
export const DATABASE_ROLES = ["ganglion_owner", "ganglion_session", "ganglion_proxy"] as const;

/** A role that may log in. */
export type DatabaseRole = (typeof DATABASE_ROLES)[number];

/** What a cluster needs to be made and configured. */
export interface ClusterOptions {
  readonly binaries: PostgresBinaries;
  readonly dataDir: string;
  readonly port: number;
  readonly tlsDir: string;
  readonly user?: SystemUser;
}

/**
 * createCluster makes the data folder once: initdb, roles, database. It works in a folder beside it and renames that at
 * the end, so a crash in the middle leaves nothing that looks finished. Does nothing when the folder is there already.
 */
export function createCluster(options: ClusterOptions): void {
  if (existsSync(join(options.dataDir, "PG_VERSION"))) {
    checkVersion(options);
    return;
  }
  const partial = `${options.dataDir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700, recursive: true });
  chmodSync(partial, 0o700);
  if (options.user) chownSync(partial, options.user.uid, options.user.gid);
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  run(options, options.binaries.initdb, [
    "-D",
    partial,
    "-U",
    "postgres",
    "--auth=reject",
    "--no-instructions",
    ...locale,
  ]);
  // Single-user mode: the superuser exists, but there is no way to log in as it, not even for a moment.
  const single = ["--single", "-j", "-D", partial];
  run(
    options,
    options.binaries.postgres,
    [...single, "postgres"],
    [
      ...DATABASE_ROLES.map((role) => `CREATE ROLE ${role} LOGIN`),
      `CREATE DATABASE ${DATABASE} OWNER ganglion_owner`,
    ],
  );
  run(
    options,
    options.binaries.postgres,
    [...single, DATABASE],
    [
      `REVOKE ALL ON DATABASE ${DATABASE} FROM PUBLIC`,
      `GRANT CONNECT ON DATABASE ${DATABASE} TO ganglion_session, ganglion_proxy`,
      "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    ],
  );
  renameSync(partial, options.dataDir);
}

/** configureCluster writes the three configuration files; they are ours, so each start replaces them. */
export function configureCluster(options: ClusterOptions): void {
  const write = (name: string, lines: string[]) => {
    const path = join(options.dataDir, name);
    rmSync(path, { force: true });
    writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600 });
    if (options.user) chownSync(path, options.user.uid, options.user.gid);
  };
  write("postgresql.conf", settings(options));
  write("pg_hba.conf", [`hostssl ${DATABASE} ${DATABASE_ROLES.join(",")} 127.0.0.1/32 cert map=ganglion`]);
  // Only these pairs: a certificate whose CN happens to be the superuser's name opens nothing.
  write(
    "pg_ident.conf",
    DATABASE_ROLES.map((role) => `ganglion ${role} ${role}`),
  );
}

function settings({ port, tlsDir }: ClusterOptions): string[] {
  const file = (name: string) => `'${join(tlsDir, name).replaceAll("'", "''")}'`;
  return [
    "listen_addresses = '127.0.0.1'",
    `port = ${port}`,
    "unix_socket_directories = ''",
    "ssl = on",
    "ssl_min_protocol_version = 'TLSv1.3'",
    `ssl_cert_file = ${file("cert.pem")}`,
    `ssl_key_file = ${file("key.pem")}`,
    `ssl_ca_file = ${file("ca.pem")}`,
    "max_connections = 200",
    "timezone = 'UTC'",
    "log_destination = 'stderr'",
    "logging_collector = off",
    "lc_messages = 'C'",
    // A failing statement, its parameters and even its error message carry what users wrote: none of it belongs in a
    // log, and whoever sent the statement gets the error. 'log' ranks above 'error': the server's own reports stay.
    "log_min_messages = 'log'",
    "log_statement = 'none'",
    "log_min_error_statement = 'panic'",
    "log_parameter_max_length = 0",
    "log_parameter_max_length_on_error = 0",
    "log_error_verbosity = 'terse'",
  ];
}

function checkVersion({ binaries, dataDir, user }: ClusterOptions): void {
  const data = readFileSync(join(dataDir, "PG_VERSION"), "utf8").trim();
  const { stdout } = spawnSync(binaries.postgres, ["--version"], { ...identity(user), encoding: "utf8" });
  const program = /\b(\d+)\.\d+/.exec(stdout)?.[1];
  if (program !== data)
    throw new Error(`${dataDir} was written by PostgreSQL ${data}, this is PostgreSQL ${program}`);
}

function run(options: ClusterOptions, program: string, args: string[], commands: string[] = []): void {
  // In single-user mode with -j a command ends at a semicolon followed by an empty line.
  const input = commands.map((command) => `${command};\n\n`).join("");
  const done = spawnSync(program, args, { ...identity(options.user), encoding: "utf8", input });
  const complaint = /^.*\b(?:ERROR|FATAL|PANIC):.*$/m.exec(`${done.stderr}\n${done.stdout}`)?.[0];
  if (done.status === 0 && !(commands.length > 0 && complaint)) return;
  throw new Error(
    `${args.includes("--single") ? "postgres --single" : "initdb"} failed: ${complaint ?? String(done.stderr || done.error)}`,
  );
}

/** The user, folder and environment PostgreSQL's programs get: nothing of the caller's. */
export function identity(user: SystemUser | undefined): SpawnSyncOptions {
  const env = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
  return user ? { cwd: "/", env, uid: user.uid, gid: user.gid } : { cwd: "/", env };
}
