import { readdirSync, readFileSync } from "node:fs";
import type { BackgroundProcess } from "./protocol.ts";

/** Name of the environment variable that marks every process of one call, however it detaches itself. */
export const CALL_MARK = "GANGLION_CALL";

type ProcessRow = { pid: number; parent: number; session: number; isZombie: boolean };

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function readTable(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readText(`/proc/${pid}/stat`);
    // The command in parentheses may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields.length < 4) continue;
    rows.push({
      pid,
      parent: Number(fields[1]),
      session: Number(fields[3]),
      isZombie: fields[0] === "Z" || fields[0] === "X",
    });
  }
  return rows;
}

function isMarked(pid: number, mark: string): boolean {
  return readText(`/proc/${pid}/environ`).split("\0").includes(`${CALL_MARK}=${mark}`);
}

/** Pids that are no command's: the jail's init and the agent itself. */
function isOurs(pid: number): boolean {
  return pid === 1 || pid === process.pid;
}

/**
 * findCallProcesses lists the living processes of one call: those in the shell's session, their descendants, and
 * those that left both (setsid, double fork) but still carry the call's mark (cases B068, A094).
 */
export function findCallProcesses(shellPid: number, mark: string): number[] {
  const rows = readTable().filter((row) => !isOurs(row.pid) && !row.isZombie);
  const found = new Set<number>();
  for (const row of rows) {
    if (row.pid === shellPid || row.session === shellPid || isMarked(row.pid, mark)) found.add(row.pid);
  }
  for (let grew = true; grew; ) {
    grew = false;
    for (const row of rows) {
      if (!found.has(row.pid) && found.has(row.parent)) {
        found.add(row.pid);
        grew = true;
      }
    }
  }
  return [...found];
}

/** listBackgroundProcesses lists what still runs in the hand besides the agent (case B065). */
export function listBackgroundProcesses(limit: number): BackgroundProcess[] {
  const listed: BackgroundProcess[] = [];
  for (const row of readTable()) {
    if (isOurs(row.pid) || row.isZombie) continue;
    const command = readText(`/proc/${row.pid}/cmdline`).replaceAll("\0", " ").trim();
    if (command === "") continue;
    listed.push({ pid: row.pid, command: command.slice(0, 120) });
    if (listed.length === limit) break;
  }
  return listed;
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // Gone already.
    }
  }
}

/**
 * killCallProcesses ends every process of one call: asks first, then freezes what is left so that it cannot fork
 * ahead of us, then kills. True when nothing is left.
 */
export async function killCallProcesses(shellPid: number, mark: string, graceMs: number): Promise<boolean> {
  signalAll(findCallProcesses(shellPid, mark), "SIGTERM");
  const graceEnd = Date.now() + graceMs;
  while (Date.now() < graceEnd) {
    if (findCallProcesses(shellPid, mark).length === 0) return true;
    await pause(10);
  }
  for (let round = 0; round < 40; round += 1) {
    const left = findCallProcesses(shellPid, mark);
    if (left.length === 0) return true;
    signalAll(left, "SIGSTOP");
    signalAll(findCallProcesses(shellPid, mark), "SIGKILL");
    await pause(15);
  }
  return findCallProcesses(shellPid, mark).length === 0;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
