import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Needle, NeedleIndex } from "../kit/secret-scan/needles.ts";
import { scanFiles } from "../kit/secret-scan/scan-files.ts";
import { type Finding, scanProcess } from "../kit/secret-scan/scan-process.ts";

/** Some seconds: a process that waits for its disk stops only then. */
const STOP_TRIES = 2000;

/** One process as the scan saw it. */
export interface ScannedProcess {
  readonly name: string;
  readonly pid: number;
  readonly mayHold: boolean;
  readonly memoryBytes: number;
  readonly findings: Finding[];
  /** True when the texts that the process surely holds were found by the same search. */
  readonly controlFound: boolean;
}

/** What the whole scan found. */
export interface SecrecyProof {
  readonly processes: ScannedProcess[];
  /** Processes of hands that the kernel hides from an ordinary user; root reads them too. */
  readonly hidden: number[];
  /** Folders of hands for which the same holds. */
  readonly hiddenFolders: string[];
  readonly files: { readonly scanned: number; readonly bytes: number; readonly findings: Finding[] };
  /** Secrets that were found nowhere at all, not even where they must be: then the search proves nothing. */
  readonly unseen: string[];
  readonly holds: boolean;
}

/** What to scan. */
export interface SecrecyPlan {
  readonly secrets: readonly Needle[];
  /** Processes by name; what they started is scanned with them. */
  readonly pids: Readonly<Record<string, number>>;
  /** Names of those that may hold the secrets: mcp-proxy, the vault and the upstreams. */
  readonly mayHold: ReadonlySet<string>;
  /** A text that is no secret, and names of processes that have it on their heap: a control beyond the stack. */
  readonly heapControl: { readonly text: string; readonly names: readonly string[] };
  /** Folder with all files of the mesh, and in it those of who may hold the secrets. */
  readonly state: string;
  readonly filesMayHold: readonly string[];
}

/**
 * Stops every process of the mesh, searches all of them and all files for the secrets, and lets them
 * go on. Each process has a control: a text that it surely holds must be found the same way.
 */
export function proveSecrecy(plan: SecrecyPlan): SecrecyProof {
  const isRoot = process.getuid?.() === 0;
  const all = membersOf(plan.pids);
  const members = all.filter((member) => !isHiddenHand(member));
  const hidden = all.map(({ pid }) => pid).filter((pid) => !members.some((member) => member.pid === pid));
  const stopped: number[] = [];
  try {
    for (const { pid } of members) if (signal(pid, "SIGSTOP")) stopped.push(pid);
    const alive = members.filter(({ pid }) => stopped.includes(pid) && standsStill(pid));
    const gone = members.find((member) => member.isNamed && !alive.includes(member));
    if (gone) throw new Error(`${gone.name} ended before it could be searched`);
    const processes = alive.map((member) => scanMember(member, plan));
    const secrets = new NeedleIndex(plan.secrets);
    const files = scanFiles(plan.state, secrets);
    const allowed = plan.filesMayHold.map((folder) => `${join(plan.state, folder)}/`);
    const inFiles = files.findings.filter(({ place }) => !allowed.some((folder) => place.startsWith(folder)));
    const seen = new Set(processes.flatMap(({ findings }) => findings.map(({ needle }) => needle)));
    const unseen = plan.secrets.map(({ name }) => name).filter((name) => !seen.has(name));
    // As for processes: what lies in a hand of an ordinary user with subordinate ids belongs to one of those.
    const hands = `${join(plan.state, "sandbox")}/`;
    const unreadable = files.unreadable.filter((path) => isRoot || !path.startsWith(hands));
    const holds =
      unseen.length === 0 &&
      inFiles.length === 0 &&
      unreadable.length === 0 &&
      files.files > 0 &&
      processes.every(
        ({ controlFound, findings, mayHold }) => controlFound && (mayHold || findings.length === 0),
      );
    return {
      processes,
      hidden,
      hiddenFolders: files.unreadable,
      files: { scanned: files.files, bytes: files.bytes, findings: inFiles },
      unseen,
      holds,
    };
  } finally {
    for (const pid of stopped) signal(pid, "SIGCONT");
  }
}

/** Sends a signal; false when the process ended meanwhile, as a command of a hand or a backend of PostgreSQL may. */
function signal(pid: number, name: "SIGSTOP" | "SIGCONT"): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}

/** Resolves the race with a process that was just ending: true once it stands still, false when it is gone. */
function standsStill(pid: number): boolean {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let i = 0; i < STOP_TRIES; i++) {
    const [state = ""] = statOf(pid);
    if (state === "T" || state === "t") return true;
    if (state === "" || state === "Z" || state === "X") return false;
    Atomics.wait(pause, 0, 0, 5);
  }
  throw new Error(`process ${pid} does not stop`);
}

/** State and parent of a process; empty when it is gone. */
function statOf(pid: number): string[] {
  try {
    // The name in parentheses may hold anything.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ").slice(0, 2) ?? [];
  } catch {
    return [];
  }
}

interface Member {
  readonly name: string;
  readonly pid: number;
  /** True for a process that is named, not for what it started. */
  readonly isNamed: boolean;
}

function scanMember({ name, pid, isNamed }: Member, plan: SecrecyPlan): ScannedProcess {
  // The kernel keeps arguments and environment in the memory of the process: a text of its own for each.
  const own = Buffer.concat([readFileSync(`/proc/${pid}/cmdline`), readFileSync(`/proc/${pid}/environ`)]);
  const controls = [{ name: "own control", secret: own.toString("latin1").slice(0, 64) }];
  if (isNamed && plan.heapControl.names.includes(name)) {
    controls.push({ name: "heap control", secret: plan.heapControl.text });
  }
  const scan = scanProcess(pid, new NeedleIndex([...plan.secrets, ...controls]));
  const isControl = ({ needle }: Finding): boolean => controls.some((control) => control.name === needle);
  const inMemory = new Set(
    scan.findings.filter(({ surface }) => surface === "memory").map(({ needle }) => needle),
  );
  return {
    name,
    pid,
    mayHold: plan.mayHold.has(name),
    memoryBytes: scan.memoryBytes,
    findings: scan.findings.filter((finding) => !isControl(finding)),
    controlFound: controls.every((control) => inMemory.has(control.name)),
  };
}

/**
 * What lives in a hand is hidden from an ordinary user: the jailer gave up its rights without running another program,
 * and where the user has subordinate ids, the rest runs under one of those. Any other process that cannot be read fails
 * the scan.
 */
function isHiddenHand({ name, pid, isNamed }: Member): boolean {
  if (process.getuid?.() === 0 || isNamed || !name.startsWith("sandbox-")) return false;
  try {
    readFileSync(`/proc/${pid}/environ`);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

/** The named processes and all that they started: PostgreSQL's backends, hands and what runs in them. */
function membersOf(pids: Readonly<Record<string, number>>): Member[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const [state, parent] = statOf(Number(entry));
    // A zombie has neither memory nor files any more.
    if (parent !== undefined && state !== "Z")
      children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(entry)]);
  }
  const named = new Set(Object.values(pids));
  return Object.entries(pids).flatMap(([name, top]) => {
    const family = [top];
    for (const pid of family) family.push(...(children.get(pid) ?? []).filter((child) => !named.has(child)));
    return family.map((pid) => ({ name, pid, isNamed: pid === top }));
  });
}
