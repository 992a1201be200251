import { execFileSync } from "node:child_process";

/**
 * How `unshare` runs a command as root over hands' files: an ordinary user's hands own theirs by subordinate ids, and
 * that user may become their root.
 */
export const AS_HANDS_ROOT: readonly string[] = ["--user", "--map-root-user", "--map-auto", "--"];

/** Runs a command so, and returns what it prints. */
export function asHandsRoot(command: readonly string[], input?: string): string {
  return execFileSync("unshare", [...AS_HANDS_ROOT, ...command], { encoding: "utf8", input });
}
