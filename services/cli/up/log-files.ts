import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** A log grows to this size, then it begins anew and one older part is kept. */
const MAX_BYTES = 16 << 20;

/**
 * openLog opens a log for a child's standard output and error. The child writes to the file itself and not to a pipe:
 * it goes on, and its last words are kept, when the supervisor dies.
 */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return openSync(path, "a", 0o600);
}

/** rotateLogs cuts logs that have grown too large; writers append, so they go on at the start of the emptied file. */
export function rotateLogs(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!name.endsWith(".log") || statSync(path).size < MAX_BYTES) continue;
    copyFileSync(path, `${path}.1`);
    const file = openSync(path, "r+");
    ftruncateSync(file, 0);
    closeSync(file);
  }
}

/** lastLines returns the end of a log, for messages about a process that did not start. */
export function lastLines(path: string, count: number): string[] {
  try {
    return readFileSync(path, "utf8").trimEnd().split("\n").slice(-count);
  } catch {
    return [];
  }
}
