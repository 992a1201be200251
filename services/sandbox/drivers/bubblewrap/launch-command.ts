import type { HandResources } from "../../domain/hand-driver.ts";
import { EGRESS_FOLDER } from "../../hand-agent/protocol.ts";

/** Where the pieces of a jail are on the host. */
export type JailParts = {
  /** The Node binary that is shown inside as /opt/ganglion/bin/node. */
  nodeBinary: string;
  /** Folder with the agent's code. */
  agentFolder: string;
  /** Folder with the jail's own passwd, group, hosts and the like. */
  etcFolder: string;
  /** The hand's work folder, made by the launcher under the hand's user id. */
  workFolder: string;
  /** Folder with the hand's socket and the files that go with it; absent = no way out. */
  outsideFolder?: string;
};

/** Host identity of a hand; absent = that of the service. */
export type HandIdentity = { uid: number; gid: number };

/** Descriptors that bubblewrap reads or writes before it starts the agent, and closes. */
export const SECCOMP_FD = 3;
export const ARGUMENTS_FD = 4;
export const INFO_FD = 5;

const TEMPORARY_BYTES = 512 * 1024 * 1024;
const SMALL_BYTES = 16 * 1024 * 1024;
// V8 reserves address space that counts as data: a Node program with threads does not start with less.
const LEAST_DATA_BYTES = 4 * 1024 * 1024 * 1024;
const UID_INSIDE = 1000;

// First as the service: join the control groups.
const JOIN_SCRIPT = `while [[ $1 != -- ]]; do echo $$ > "$1" || exit 71; shift; done; shift
exec /usr/bin/env -i "$@"`;
// Then as the hand's user: close every descriptor that leaked in (case A080) and make the work folder. "env -i"
// because the environment of the jail's first process can be read from inside (case A078).
const ENTER_SCRIPT = `for fd in /proc/self/fd/*; do fd=\${fd##*/}; (( fd > ${INFO_FD} )) && eval "exec $fd>&-"; done
umask 022; mkdir -m 700 -- "$1" || exit 72; shift
exec /usr/bin/env -i "$@"`;

/** launchCommand is the host command of a jail: the program, then its arguments. */
export function launchCommand(
  parts: JailParts,
  identity: HandIdentity | undefined,
  joinFiles: readonly string[],
  resources: HandResources,
): [string, ...string[]] {
  const jail = ["/usr/bin/bwrap", "--args", String(ARGUMENTS_FD), "--", ...agentCommand(resources)];
  const enter = ["/bin/bash", "--norc", "-c", ENTER_SCRIPT, "hand", parts.workFolder, ...jail];
  const command = identity ? [...asUser(identity), ...enter] : enter;
  if (joinFiles.length === 0) return command as [string, ...string[]];
  return ["/bin/bash", "--norc", "-c", JOIN_SCRIPT, "hand", ...joinFiles, "--", ...command];
}

/** asUser is the prefix that runs a command under a subordinate id, as user 1000 of a namespace of its own. */
export function asUser(identity: HandIdentity): string[] {
  return [
    "/usr/bin/unshare",
    "--user",
    `--map-users=${identity.uid},${UID_INSIDE},1`,
    `--map-groups=${identity.gid},${UID_INSIDE},1`,
    "--setuid",
    String(UID_INSIDE),
    "--setgid",
    String(UID_INSIDE),
    "--",
  ];
}

/** jailArguments are bubblewrap's arguments, each ended by NUL; they pass through a descriptor, not through argv. */
export function jailArguments(parts: JailParts): Buffer {
  const lines: string[][] = [
    [
      "--unshare-all",
      "--unshare-user",
      "--disable-userns",
      "--uid",
      String(UID_INSIDE),
      "--gid",
      String(UID_INSIDE),
    ],
    ["--hostname", "hand", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"],
    ["--seccomp", String(SECCOMP_FD), "--info-fd", String(INFO_FD)],
    ["--ro-bind", "/usr", "/usr"],
    ...["bin", "sbin", "lib", "lib64"].map((name) => ["--symlink", `usr/${name}`, `/${name}`]),
    [
      "--proc",
      "/proc",
      "--dev",
      "/dev",
      "--size",
      String(SMALL_BYTES),
      "--perms",
      "1777",
      "--tmpfs",
      "/dev/shm",
    ],
    ["--remount-ro", "/dev"],
    ["--ro-bind", parts.etcFolder, "/etc", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives"],
    parts.outsideFolder === undefined ? [] : ["--ro-bind", parts.outsideFolder, EGRESS_FOLDER],
    ["--size", String(TEMPORARY_BYTES), "--perms", "1777", "--tmpfs", "/tmp"],
    ["--size", String(TEMPORARY_BYTES), "--perms", "0700", "--tmpfs", "/home/hand"],
    ["--size", String(SMALL_BYTES), "--perms", "0700", "--tmpfs", "/run/hand"],
    ["--symlink", "/tmp", "/var/tmp"],
    ["--bind", parts.workFolder, "/workspace"],
    ["--ro-bind", parts.nodeBinary, "/opt/ganglion/bin/node"],
    ["--ro-bind", parts.agentFolder, "/opt/ganglion/agent"],
    ["--remount-ro", "/", "--chdir", "/workspace"],
  ];
  return Buffer.from(
    lines
      .flat()
      .map((argument) => `${argument}\0`)
      .join(""),
    "utf8",
  );
}

function agentCommand(resources: HandResources): string[] {
  return [
    "/usr/bin/prlimit",
    // Counted in the hand's own user namespace, so it bounds the hand whatever its host id is.
    `--nproc=${resources.maxProcesses}`,
    "--nofile=4096",
    "--core=0",
    `--fsize=${resources.diskBytes}`,
    // A coarse bound per process for hosts without control groups.
    `--data=${Math.max(resources.memoryBytes, LEAST_DATA_BYTES)}`,
    "--",
    "/opt/ganglion/bin/node",
    "--no-warnings",
    "--max-old-space-size=256",
    // A pattern that backtracks too long is finished by V8's linear engine.
    "--enable-experimental-regexp-engine-on-excessive-backtracks",
    "/opt/ganglion/agent/main.js",
  ];
}
