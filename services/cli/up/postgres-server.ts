import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { freePort } from "./free-port.ts";
import { locatePostgresBinaries } from "./postgres-binaries.ts";
import {
  type ClusterOptions,
  configureCluster,
  createCluster,
  DATABASE,
  identity,
} from "./postgres-cluster.ts";
import { evictPostmaster } from "./postgres-eviction.ts";
import type { SystemUser } from "./system-user.ts";

/** How to run the embedded PostgreSQL. */
export interface PostgresOptions {
  /** Data folder; made on first start, kept by stop(). Its parent must be open to `user`. */
  readonly dataDir: string;
  /** TCP port on 127.0.0.1; 0 picks a free one. */
  readonly port: number;
  /** Folder with ca.pem, cert.pem and key.pem, readable by `user`; key.pem 0600 and `user`'s own. */
  readonly tlsDir: string;
  /** The unprivileged user to run as; needed when we are root, impossible otherwise. */
  readonly user?: SystemUser;
  /** Stop the server when this process dies, however it dies. */
  readonly diesWithParent?: boolean;
  /** Called with each line of the server's log. */
  readonly onLog?: (line: string) => void;
}

/** A PostgreSQL that accepts connections. */
export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly pid: number;
  /** Settles when the server has ended, for whatever reason. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Reads the certificates again. */
  reload(): void;
  /** Ends all connections and the server; the data stays. */
  stop(): Promise<void>;
}

const READY = "database system is ready to accept connections";
/** A server that was killed leaves children that hold its shared memory for a moment, and a port may be taken meanwhile. */
const TRANSIENT = /pre-existing shared memory block|could not bind|could not create any TCP\/IP sockets/;
const START_TRIES = 20;
const STOP_PATIENCE_MS = 10_000;

/**
 * startPostgres starts the embedded PostgreSQL and resolves when it accepts connections. A server that a crashed
 * predecessor left running on the same data folder is stopped first. Never runs as root.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const isRoot = process.getuid?.() === 0;
  if (isRoot && (!options.user || options.user.uid === 0))
    throw new Error("PostgreSQL does not run as root: name a user");
  if (!isRoot && options.user) throw new Error(`only root can run PostgreSQL as ${options.user.name}`);
  const binaries = locatePostgresBinaries({ user: options.user, copyTo: `${options.dataDir}.programs` });
  await evictPostmaster(options.dataDir);
  const cluster = { binaries, dataDir: options.dataDir, tlsDir: options.tlsDir, user: options.user };
  createCluster({ ...cluster, port: options.port });
  for (let tries = 1; ; tries += 1) {
    const port = options.port || (await freePort());
    configureCluster({ ...cluster, port });
    try {
      return await launch({ ...cluster, port }, options);
    } catch (error) {
      if (tries === START_TRIES || !TRANSIENT.test((error as Error).message)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

async function launch(cluster: ClusterOptions, options: PostgresOptions): Promise<PostgresServer> {
  const child = spawnServer(cluster, options.diesWithParent ?? false);
  const exited = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  await ready(child, options.onLog ?? (() => {}));
  return {
    host: "127.0.0.1",
    port: cluster.port,
    database: DATABASE,
    pid: child.pid as number,
    exited,
    reload: () => void child.kill("SIGHUP"),
    stop: () => stop(child, exited),
  };
}

function spawnServer({ binaries, dataDir, user }: ClusterOptions, diesWithParent: boolean): ChildProcess {
  const stdio: ["ignore", "ignore", "pipe"] = ["ignore", "ignore", "pipe"];
  const args = ["-D", dataDir];
  if (!diesWithParent) return spawn(binaries.postgres, args, { ...identity(user), stdio });
  // The death signal must be set after the change of user, which clears it; setpriv keeps that order and then becomes postgres.
  const change = user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"] : [];
  const command = ["--pdeathsig", "INT", ...change, "--", binaries.postgres, ...args];
  return spawn("setpriv", command, { ...identity(undefined), stdio });
}

/** ready resolves at the log line that says so and rejects with the server's own reason when it ends before. */
function ready(child: ChildProcess, onLog: (line: string) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const recent: string[] = [];
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  lines.on("line", (line) => {
    recent.push(line);
    if (recent.length > 20) recent.shift();
    onLog(line);
    if (line.includes(READY)) resolve();
  });
  child.once("error", reject);
  // 'close' and not 'exit': by then the last lines, which hold the reason, have been read.
  child.once("close", () => reject(new Error(`PostgreSQL did not start: ${recent.join(" | ")}`)));
  return promise;
}

async function stop(child: ChildProcess, exited: PostgresServer["exited"]): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGINT");
  // Fast shutdown waits for a checkpoint; SIGQUIT does not, and recovery replays the log at the next start.
  const patience = setTimeout(() => child.kill("SIGQUIT"), STOP_PATIENCE_MS);
  await exited;
  clearTimeout(patience);
}
