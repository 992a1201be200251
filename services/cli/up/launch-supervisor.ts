import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { compileCache } from "./compile-cache.ts";
import { openLog } from "./log-files.ts";
import { CHECKOUT, makeFolder, meshFiles, meshId } from "./mesh-files.ts";
import { type MountPoints, makeMountPoints } from "./mount-points.ts";
import { baseEnvironment, nodeProgram } from "./service-specs.ts";
import type { StartLine, SupervisorOptions } from "./supervisor-options.ts";

/** What `up` was asked for. */
export type LaunchOptions = Omit<SupervisorOptions, "id" | "checkout" | "state" | "publicState"> & {
  readonly state: string;
};

/** flock's exit code when somebody else holds the lock. */
const LOCKED = 75;

/**
 * launchSupervisor starts the supervisor in the background and resolves when the mesh is ready. The supervisor is
 * another session of its own, so it outlives this terminal; a lock on the state folder keeps a second one out.
 */
export async function launchSupervisor(
  options: LaunchOptions,
  onLine: (line: StartLine) => void,
): Promise<void> {
  makeFolder(options.state, 0o711);
  const publicState = realpathSync(options.state);
  const files = meshFiles(publicState);
  const id = meshId(publicState);
  const inside =
    process.getuid?.() === 0 ? makeMountPoints(publicState) : { checkout: CHECKOUT, state: publicState };
  // Whoever can open the lock can hold it.
  closeSync(openSync(files.lock, "a", 0o600));
  const log = openLog(join(files.logs, "supervisor.log"));
  const command = supervisorCommand(inside, { publicState, lock: files.lock });
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: "/",
    env: { ...baseEnvironment(), ...compileCache(publicState, undefined) },
    detached: true,
    stdio: ["pipe", "pipe", log],
  }) as ChildProcessByStdio<Writable, Readable, null>;
  closeSync(log);
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify({ ...options, ...inside, id, publicState } satisfies SupervisorOptions));
  const exited = once(child, "exit") as Promise<[number | null]>;
  exited.catch(() => {});
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as StartLine;
    // Paths as people reach them.
    if ("failed" in line) throw new Error(line.failed.replaceAll(inside.state, publicState));
    onLine(line);
    if ("ready" in line) {
      child.stdout.destroy();
      child.unref();
      return;
    }
  }
  const [code] = await exited;
  if (code === LOCKED) throw new Error(`another supervisor is starting or stopping on ${options.state}`);
  throw new Error(`the supervisor ended with ${code}; see ${join(files.logs, "supervisor.log")}`);
}

/**
 * As root the services run as users who may not be able to enter the folders above the checkout. In a mount namespace
 * of the mesh's own, checkout (read-only) and state appear below /run/ganglion, where everybody can pass.
 */
function supervisorCommand(inside: MountPoints, files: { publicState: string; lock: string }): string[] {
  const program = join(inside.checkout, "services", "cli", "up", "supervisor-main.ts");
  const locked = ["flock", "--nonblock", "--no-fork", "-E", String(LOCKED), files.lock];
  const run = [...locked, nodeProgram(inside.checkout), program];
  if (inside.state === files.publicState) return run;
  const script =
    'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && mount --bind "$3" "$4" && shift 4 && exec "$@"';
  const mounts = [CHECKOUT, inside.checkout, files.publicState, inside.state];
  return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", ...mounts, ...run];
}
