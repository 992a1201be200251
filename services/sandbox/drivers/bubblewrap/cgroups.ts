import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { HandResources } from "../../domain/hand-driver.ts";

/** The control group (or, in version 1, the groups) of one hand. */
export type HandCgroup = {
  /** Files that a process writes its own id to in order to join. */
  joinFiles: string[];
  /** Removes the group once its processes are gone. */
  remove: () => Promise<void>;
};

type Kind = "memory" | "pids" | "cpu" | "unified";

/**
 * Cgroups limits hands as a whole, in folders that somebody with the right to do so gave to this service: one folder
 * of a version 2 hierarchy, or one per controller of version 1.
 */
export class Cgroups {
  readonly #folders: Map<Kind, string>;

  constructor(folders: readonly string[]) {
    this.#folders = new Map(folders.map((folder) => [kindOf(folder), folder]));
  }

  /** Limits of Resources that are enforced. */
  get enforced(): ReadonlySet<"memory" | "cpu" | "processes"> {
    const enforced = new Set<"memory" | "cpu" | "processes">();
    const unified = this.#folders.get("unified");
    const controllers = unified
      ? readFileSync(join(unified, "cgroup.subtree_control"), "utf8").split(/\s+/)
      : [];
    if (this.#folders.has("memory") || controllers.includes("memory")) enforced.add("memory");
    if (this.#folders.has("cpu") || controllers.includes("cpu")) enforced.add("cpu");
    if (this.#folders.has("pids") || controllers.includes("pids")) enforced.add("processes");
    return enforced;
  }

  /** create makes the groups of a hand with its limits. */
  create(handId: string, resources: HandResources): HandCgroup {
    const made: string[] = [];
    try {
      for (const [kind, folder] of this.#folders) {
        const group = join(folder, handId);
        mkdirSync(group, { recursive: true });
        made.push(group);
        for (const [file, value] of limitFiles(kind, resources)) write(join(group, file), value);
      }
    } catch (error) {
      for (const group of made) rmdirSync(group);
      throw error;
    }
    return { joinFiles: made.map((group) => join(group, "cgroup.procs")), remove: () => removeAll(made) };
  }

  /** removeLeftovers ends what a dead predecessor's hands still run, and removes their groups (case B070). */
  async removeLeftovers(): Promise<void> {
    for (const folder of this.#folders.values()) {
      for (const name of readdirSync(folder)) {
        if (name !== "probe" && !name.startsWith("hand_")) continue;
        for (const pid of readFileSync(join(folder, name, "cgroup.procs"), "utf8").split("\n")) {
          if (Number(pid) > 1) killQuietly(Number(pid));
        }
        await removeAll([join(folder, name)]);
      }
    }
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

function kindOf(folder: string): Kind {
  const has = (file: string) => existsSync(join(folder, file));
  accessSync(folder, constants.W_OK);
  if (has("cgroup.controllers")) {
    enableControllers(folder);
    return "unified";
  }
  if (has("memory.limit_in_bytes")) return "memory";
  if (has("cpu.cfs_quota_us")) return "cpu";
  if (has("cgroup.procs")) return "pids";
  throw new Error(`${folder} is no control group`);
}

function enableControllers(folder: string): void {
  for (const name of ["memory", "pids", "cpu"]) {
    try {
      writeFileSync(join(folder, "cgroup.subtree_control"), `+${name}`);
    } catch {
      // Not delegated: `enforced` will not name it.
    }
  }
}

function limitFiles(kind: Kind, resources: HandResources): [string, string][] {
  const quota = String(resources.cpuMillis * 100);
  switch (kind) {
    case "memory":
      return [
        ["memory.limit_in_bytes", String(resources.memoryBytes)],
        ["memory.memsw.limit_in_bytes", String(resources.memoryBytes)],
      ];
    case "pids":
      return [["pids.max", String(resources.maxProcesses)]];
    case "cpu":
      return [
        ["cpu.cfs_period_us", "100000"],
        ["cpu.cfs_quota_us", quota],
      ];
    case "unified":
      return [
        ["memory.max", String(resources.memoryBytes)],
        ["memory.swap.max", "0"],
        ["pids.max", String(resources.maxProcesses)],
        ["cpu.max", `${quota} 100000`],
      ];
  }
}

/** A file that is not there belongs to a controller that is not; what is there must take its value. */
function write(file: string, value: string): void {
  if (existsSync(file)) writeFileSync(file, value);
}

async function removeAll(groups: readonly string[]): Promise<void> {
  for (const group of groups) {
    for (let attempt = 0; existsSync(group); attempt += 1) {
      try {
        rmdirSync(group);
      } catch (error) {
        // Busy until the kernel has buried the last process.
        if (attempt >= 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }
}
