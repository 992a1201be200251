import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { SystemUser } from "./system-user.ts";

const ROOT = "/sys/fs/cgroup";
const CONTROLLERS = ["memory", "pids", "cpu"] as const;

/** Folders in which the sandbox may make cgroups for its hands. */
export interface DelegatedCgroup {
  readonly version: 1 | 2;
  /** v2: one folder; v1: one for each controller, by its name. */
  readonly folders: Record<string, string>;
  /** v2 only: where the sandbox itself has to be, so that it may move hands within the tree. */
  readonly home?: string;
}

/**
 * delegateCgroup makes cgroup folders that belong to the sandbox's user. Undefined where the machine offers none: hands
 * then run without limits of memory and processes, and `doctor` says so.
 */
export function delegateCgroup(id: string, owner: SystemUser): DelegatedCgroup | undefined {
  try {
    return existsSync(join(ROOT, "cgroup.controllers")) ? delegateV2(id, owner) : delegateV1(id, owner);
  } catch {
    return undefined;
  }
}

/** removeCgroup removes the folders; those in which something still runs stay. */
export function removeCgroup(delegated: DelegatedCgroup | undefined): void {
  for (const folder of Object.values(delegated?.folders ?? {})) removeTree(folder);
}

function delegateV2(id: string, owner: SystemUser): DelegatedCgroup {
  const folder = join(ROOT, `ganglion-${id}`);
  enable(ROOT);
  mkdirSync(folder, { recursive: true });
  enable(folder);
  giveTo(owner, folder, ["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"]);
  const home = join(folder, "service");
  mkdirSync(home, { recursive: true });
  giveTo(owner, home, ["cgroup.procs", "cgroup.threads"]);
  return { version: 2, folders: { unified: folder }, home };
}

function delegateV1(id: string, owner: SystemUser): DelegatedCgroup | undefined {
  const folders: Record<string, string> = {};
  for (const controller of CONTROLLERS) {
    if (!existsSync(join(ROOT, controller, "cgroup.procs"))) continue;
    const folder = join(ROOT, controller, `ganglion-${id}`);
    mkdirSync(folder, { recursive: true });
    giveTo(owner, folder, ["cgroup.procs", "tasks"]);
    folders[controller] = folder;
  }
  return Object.keys(folders).length > 0 ? { version: 1, folders } : undefined;
}

function enable(folder: string): void {
  const offered = readFileSync(join(folder, "cgroup.controllers"), "utf8").split(/\s+/);
  const wanted = CONTROLLERS.filter((controller) => offered.includes(controller));
  writeFileSync(join(folder, "cgroup.subtree_control"), wanted.map((name) => `+${name}`).join(" "));
}

function giveTo(owner: SystemUser, folder: string, files: string[]): void {
  chownSync(folder, owner.uid, owner.gid);
  for (const file of files) {
    const path = join(folder, file);
    if (existsSync(path)) chownSync(path, owner.uid, owner.gid);
  }
}

function removeTree(folder: string): void {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) removeTree(join(folder, entry.name));
    }
    rmdirSync(folder);
  } catch {
    // Gone already, or still in use.
  }
}
