import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The real MCP server, reachable over its socket only. */
export interface EverythingServer {
  readonly socketPath: string;
  readonly pid: number;
  /** Settles when it has ended. */
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * startEverythingServer starts @modelcontextprotocol/server-everything over Streamable HTTP. It checks no credential and
 * would listen on every interface: its port is therefore a unix socket in a folder that only this user may enter, and
 * the check in front of it is the only way in. It dies with this process, also when that is killed.
 */
export async function startEverythingServer(): Promise<EverythingServer> {
  const folder = mkdtempSync(join(tmpdir(), "ganglion-mcp-"));
  const socketPath = join(folder, "everything.sock");
  const program = createRequire(import.meta.url).resolve(
    "@modelcontextprotocol/server-everything/dist/index.js",
  );
  const command = ["--pdeathsig", "KILL", "--", process.execPath, program, "streamableHttp"];
  const child = spawn("setpriv", command, {
    // One of its tools prints its environment: there is nothing in it.
    env: { PORT: socketPath, PATH: "/usr/bin:/bin", NO_COLOR: "1" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit").finally(() => rmSync(folder, { recursive: true, force: true }));
  const recent: string[] = [];
  const lines = createInterface({ input: child.stderr });
  const listening = new Promise<void>((resolve) => {
    lines.on("line", (line) => {
      recent.push(line);
      if (recent.length > 20) recent.shift();
      if (line.includes("listening on port")) resolve();
    });
  });
  const failed = exited.then(() => Promise.reject(new Error(`the MCP server ended: ${recent.join(" | ")}`)));
  await Promise.race([listening, failed]);
  failed.catch(() => {});
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return { socketPath, pid: child.pid as number, exited, stop };
}
