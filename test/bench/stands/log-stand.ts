import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { freePort } from "../../../services/cli/up/free-port.ts";
import { DEFAULT_IMAGE } from "../../../services/common/config/common-fields.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { startServer } from "../../../services/common/grpc/start-server.ts";
import { BindingServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { migrate as migrateProxy } from "../../../services/mcp-proxy/store/migrate.ts";
import { migrate as migrateSession } from "../../../services/session/store/migrate.ts";
import { startTestPostgres, type TestPostgres } from "../../kit/postgres.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { type BenchHarness, startBenchHarness } from "./bench-harness.ts";
import { createSessions, type Door } from "./create-sessions.ts";
import { openIdentity } from "./identity.ts";

const MAIN = fileURLToPath(new URL("../../../services/session/main.ts", import.meta.url));
const HARNESS = "harness-bench";

/** A session the benchmark's harness drives. */
export interface LeasedSession {
  readonly sessionId: string;
  readonly epoch: bigint;
}

/** A real PostgreSQL and a real session service in a process of its own. */
export interface LogStand {
  readonly cleanUps: CleanUps;
  readonly postgres: TestPostgres;
  readonly harness: BenchHarness;
  /** SPIFFE id of the harness: the owner of the leases. */
  readonly owner: string;
  /** The service's address, and an operator who may ask it. */
  readonly door: Door;
  /** Makes sessions and leases them. */
  leaseSessions(count: number): Promise<LeasedSession[]>;
}

/** startLogStand starts the two, and answers for mcp-proxy, which only binds the sessions that are made. */
export async function startLogStand(cleanUps: CleanUps, say: (line: string) => void): Promise<LogStand> {
  say("starting PostgreSQL and a session service");
  const root = mkdtempSync(join(tmpdir(), "ganglion-bench-log-"));
  cleanUps.add(() => rmSync(root, { recursive: true, force: true }));
  const postgres = await startTestPostgres();
  cleanUps.add(() => postgres.stop());
  await migrateProxy(postgres.connection("ganglion_owner"));
  await migrateSession(postgres.connection("ganglion_owner"));
  const issuer = { authority: postgres.authority, root, cleanUps };
  const proxy = await startServer({
    service: "mcp-proxy",
    instance: "mcp-proxy-1",
    listen: "127.0.0.1:0",
    tls: await openIdentity(issuer, "mcp-proxy", "mcp-proxy-1"),
    image: DEFAULT_IMAGE,
    implementations: [implementSome(BindingServiceService, { bind: unary(async () => ({})) })],
    log: pino({ level: "error" }, process.stderr),
    ownsProcess: false,
  });
  cleanUps.add(() => proxy.force());
  const address = await startSession({ postgres, root, proxy: proxy.address, cleanUps });
  const door: Door = { address, service: "session", tls: await openIdentity(issuer, "operator", "bench") };
  const harness = await startBenchHarness(address, await openIdentity(issuer, "harness", HARNESS), cleanUps);
  return {
    cleanUps,
    postgres,
    harness,
    owner: `spiffe://ganglion.local/harness/${HARNESS}`,
    door,
    leaseSessions: async (count) => {
      const ids = await createSessions(door, count, { name: "bench", model: "claude-opus-5-5" });
      const leased: LeasedSession[] = [];
      for (const sessionId of ids) leased.push({ sessionId, epoch: await harness.acquire(sessionId) });
      return leased;
    },
  };
}

/** Starts the process as `up` does: its log goes to a file, so that reading it costs nobody anything. */
async function startSession({
  postgres,
  root,
  proxy,
  cleanUps,
}: {
  postgres: TestPostgres;
  root: string;
  proxy: string;
  cleanUps: CleanUps;
}): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`;
  const logFile = join(root, "session.log");
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...postgres.env("ganglion_session"),
      GANGLION_INSTANCE: "session-1",
      GANGLION_LISTEN: address,
      GANGLION_PROXY_ADDR: proxy,
    },
    stdio: ["ignore", log, log],
  });
  const exited = once(child, "exit");
  cleanUps.add(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  child.once("exit", (code, signal) => {
    if (signal === null && code !== 0) {
      process.stderr.write(
        `the session service ended with ${code}:\n${readFileSync(logFile, "utf8").slice(-4000)}\n`,
      );
    }
  });
  return address;
}
