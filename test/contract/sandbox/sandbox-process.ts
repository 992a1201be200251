import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, lchownSync, lstatSync, mkdtempSync, readdirSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { prepareUsers } from "../../../services/cli/up/service-users.ts";
import type { SystemUser } from "../../../services/cli/up/system-user.ts";

const CHECKOUT = realpathSync(fileURLToPath(new URL("../../..", import.meta.url)));
const MOUNTED = "/run/ganglion-test/app";
// The checkout may lie below a folder that only root may enter: show it where the service's user can.
const AS_USER = `mkdir -p ${MOUNTED} && mount --bind "$1" ${MOUNTED} && cd / && uid=$2 gid=$3 && shift 3 &&
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --inh-caps=-all -- "$@"`;

/** A sandbox service in a process of its own. */
export type SandboxProcess = {
  child: ChildProcess;
  addr: string;
  adminAddr: string;
  lines: () => Record<string, unknown>[];
  output: () => string;
  exit: Promise<number | NodeJS.Signals>;
  kill: (signal?: NodeJS.Signals) => Promise<void>;
};

/** The user that the service runs as: its own when the tests run as root, else the tests' own. */
export function sandboxUser(): SystemUser | undefined {
  return prepareUsers().sandbox;
}

/** Makes a data folder that belongs to the service's user. */
export function makeDataFolder(user: SystemUser | undefined): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "ganglion-sandbox-"));
  chmodSync(folder, 0o711);
  if (user) lchownSync(folder, user.uid, user.gid);
  return folder;
}

/** Gives a folder tree to the service's user. */
export function giveTo(user: SystemUser | undefined, path: string): void {
  if (!user) return;
  lchownSync(path, user.uid, user.gid);
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) giveTo(user, join(path, name));
}

/** spawnSandbox starts services/sandbox/main.ts under the service's user with an environment made from nothing. */
export function spawnSandbox(
  user: SystemUser | undefined,
  env: Record<string, string>,
  leaked?: number,
): ChildProcess {
  const stdio: StdioOptions = ["ignore", "pipe", "pipe"];
  if (leaked !== undefined) stdio.push("ignore", "ignore", "ignore", "ignore", leaked);
  const [program, ...args] = sandboxCommand(user, ["services/sandbox/main.ts"]);
  return spawn(program, args, { env, stdio });
}

/**
 * sandboxCommand runs Node under the service's user. The last of `files`, named from the checkout's root, is what runs; those
 * before it are loaded first.
 */
export function sandboxCommand(
  user: SystemUser | undefined,
  files: readonly string[],
): [string, ...string[]] {
  const place = (name: string) => (user ? join(MOUNTED, name) : join(CHECKOUT, name));
  const imports = files.slice(0, -1).flatMap((name) => ["--import", place(name)]);
  const args = ["--disable-warning=ExperimentalWarning", ...imports, place(files.at(-1) ?? "")];
  if (!user) return [process.execPath, ...args];
  const node = moved(realpathSync(process.execPath));
  const script = [
    "/bin/sh",
    "-c",
    AS_USER,
    "sh",
    CHECKOUT,
    String(user.uid),
    String(user.gid),
    node,
    ...args,
  ];
  return ["/usr/bin/unshare", "--mount", "--propagation", "private", "--", ...script];
}

/** startSandbox waits until the service listens. */
export async function startSandbox(
  user: SystemUser | undefined,
  env: Record<string, string>,
  leaked?: number,
): Promise<SandboxProcess> {
  const child = spawnSandbox(user, env, leaked);
  const printed: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const listening = Promise.withResolvers<{ addr: string; admin_addr?: string }>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream as Readable }).on("line", (line) => {
      printed.push(line);
      if (!line.startsWith("{")) return;
      const parsed = JSON.parse(line) as Record<string, unknown>;
      lines.push(parsed);
      if (parsed.msg === "listening") listening.resolve(parsed as { addr: string });
    });
  }
  const exit = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const { addr, admin_addr: adminAddr = "" } = await Promise.race([
    listening.promise,
    exit.then((code) => {
      throw new Error(`the sandbox service ended with ${code}: ${printed.join("\n")}`);
    }),
  ]);
  const kill = async (signal: NodeJS.Signals = "SIGKILL") => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exit;
  };
  return { child, addr, adminAddr, lines: () => lines, output: () => printed.join("\n"), exit, kill };
}

function moved(path: string): string {
  const inside = relative(CHECKOUT, path);
  return inside.startsWith("..") ? path : join(MOUNTED, inside);
}
