import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import type { NeedleIndex, Piece } from "./needles.ts";

/** Something that was found where it lies. */
export interface Finding extends Piece {
  /** "memory", "environment", "arguments" or "open file". */
  readonly surface: string;
  /** Where exactly, for the person who has to mend it. */
  readonly place: string;
}

/** What one process was searched for, and how much of it. */
export interface ProcessScan {
  readonly findings: Finding[];
  readonly memoryBytes: number;
  /** Regions that could not be read; the kernel's own pages never can. */
  readonly unreadable: string[];
}

const CHUNK_BYTES = 4 << 20;
/** Chunks overlap, so that nothing hides on a seam. */
const OVERLAP_BYTES = 64;
/** Pages of the kernel in every process: without content of the process, and not readable. */
const KERNEL_REGIONS = new Set(["[vvar]", "[vsyscall]", "[vvar_vclock]"]);

/**
 * Searches memory, environment, arguments and open files of a process. Stop the process before
 * (SIGSTOP), or what moves meanwhile can be missed.
 */
export function scanProcess(pid: number, index: NeedleIndex): ProcessScan {
  const findings: Finding[] = [];
  for (const [surface, file] of [
    ["environment", "environ"],
    ["arguments", "cmdline"],
  ] as const) {
    for (const { piece } of index.find(readFileSync(`/proc/${pid}/${file}`))) {
      findings.push({ ...piece, surface, place: `/proc/${pid}/${file}` });
    }
  }
  findings.push(...scanOpenFiles(pid, index));
  return { ...scanMemory(pid, index, findings), findings };
}

/** Files that the process holds open, deleted ones included: read through the descriptor itself. */
function scanOpenFiles(pid: number, index: NeedleIndex): Finding[] {
  const findings: Finding[] = [];
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const path = `/proc/${pid}/fd/${fd}`;
    const target = readlinkSync(path);
    // Sockets, pipes and devices have no content to read again.
    if (!target.startsWith("/") || target.startsWith("/dev/") || target.startsWith("/proc/")) continue;
    try {
      for (const { piece } of index.find(readFileSync(path))) {
        findings.push({ ...piece, surface: "open file", place: target });
      }
    } catch (error) {
      if (!["EISDIR", "EACCES", "ENOENT", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? ""))
        throw error;
    }
  }
  return findings;
}

function scanMemory(
  pid: number,
  index: NeedleIndex,
  findings: Finding[],
): { memoryBytes: number; unreadable: string[] } {
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const chunk = Buffer.alloc(CHUNK_BYTES + OVERLAP_BYTES);
  const unreadable: string[] = [];
  let memoryBytes = 0;
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
      const region = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)$/.exec(line);
      if (!region?.[3]?.startsWith("r") || KERNEL_REGIONS.has(region[4] ?? "")) continue;
      const end = BigInt(`0x${region[2]}`);
      for (let at = BigInt(`0x${region[1]}`); at < end; at += BigInt(CHUNK_BYTES)) {
        const length = Number(end - at < BigInt(chunk.length) ? end - at : BigInt(chunk.length));
        let read: number;
        try {
          read = readSync(memory, chunk, 0, length, at as unknown as number);
        } catch {
          unreadable.push(line);
          break;
        }
        memoryBytes += Math.min(read, CHUNK_BYTES);
        for (const found of index.find(chunk.subarray(0, read))) {
          const place = `0x${(at + BigInt(found.at)).toString(16)} ${region[4] || "heap"}`;
          findings.push({ ...found.piece, surface: "memory", place });
        }
      }
    }
  } finally {
    closeSync(memory);
  }
  return { memoryBytes, unreadable };
}
