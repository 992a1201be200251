import { chownSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "./mesh-files.ts";
import type { SystemUser } from "./system-user.ts";

/**
 * compileCache gives a process a folder in which Node keeps what it compiled: the next start takes less than half the
 * time. Each user has one of its own, since whoever can write to it decides what the process runs.
 */
export function compileCache(state: string, user: SystemUser | undefined): Record<string, string> {
  const folder = join(state, "cache", user?.name ?? "own");
  makeFolder(join(state, "cache"), 0o711);
  makeFolder(folder, 0o700);
  if (user) chownSync(folder, user.uid, user.gid);
  return { NODE_COMPILE_CACHE: folder };
}
