import { readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";

const PATIENCE_MS = 15_000;
const POLL_MS = 20;

/**
 * evictPostmaster ends the PostgreSQL that still runs on a data folder after whoever started it crashed, waits for the
 * last of its processes, and only then removes the pid file: that file guards against a second server beside orphaned
 * backends. A process is signalled only when its working folder is that data folder, which is where PostgreSQL's
 * processes sit; a reused process id does not.
 */
export async function evictPostmaster(dataDir: string): Promise<void> {
  const pidFile = join(dataDir, "postmaster.pid");
  const pid = readPid(pidFile);
  if (pid === undefined) return;
  if (sitsIn(pid, dataDir)) process.kill(pid, "SIGINT");
  for (const deadline = Date.now() + PATIENCE_MS; ; ) {
    const left = residents(dataDir);
    if (left.length === 0) break;
    if (Date.now() > deadline)
      throw new Error(`PostgreSQL (processes ${left.join(", ")}) still runs on ${dataDir} and does not stop`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  rmSync(pidFile, { force: true });
}

function readPid(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function residents(dataDir: string): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => sitsIn(pid, dataDir));
}

function sitsIn(pid: number, dataDir: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDir);
  } catch {
    return false;
  }
}
