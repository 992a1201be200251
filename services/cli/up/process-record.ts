import { readFileSync } from "node:fs";

/** Names one process for good: a process id alone is used again after its process ended. */
export interface ProcessRecord {
  readonly pid: number;
  /** Start time in clock ticks since boot, as /proc/<pid>/stat has it. */
  readonly startTime: string;
  /** The boot that the ticks count from. */
  readonly bootId: string;
}

const POLL_MS = 20;

/** recordOf describes a running process; undefined when there is none or it is only waiting to be reaped. */
export function recordOf(pid: number): ProcessRecord | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name stands in parentheses and may hold anything, parentheses included.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTime] = [fields[0], fields[19]];
    if (!startTime || state === "Z" || state === "X") return undefined;
    return { pid, startTime, bootId: readBootId() };
  } catch {
    return undefined;
  }
}

/** isRunning says whether that very process still runs. */
export function isRunning(record: ProcessRecord): boolean {
  const now = recordOf(record.pid);
  return now !== undefined && now.startTime === record.startTime && now.bootId === record.bootId;
}

/** endProcess ends that very process and its group: SIGTERM first, SIGKILL after the grace. Never signals another. */
export async function endProcess(record: ProcessRecord, graceMs: number): Promise<void> {
  if (!isRunning(record)) return;
  signal(record, "SIGTERM");
  for (const deadline = Date.now() + graceMs; isRunning(record); ) {
    if (Date.now() > deadline) signal(record, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function signal(record: ProcessRecord, name: NodeJS.Signals): void {
  for (const target of [-record.pid, record.pid]) {
    try {
      process.kill(target, name);
      return;
    } catch (error) {
      // Not the leader of a group, or gone meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

function readBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
