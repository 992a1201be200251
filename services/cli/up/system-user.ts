import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** An operating-system user that a child process runs as. */
export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** findSystemUser looks a user up by name; undefined when there is none. */
export function findSystemUser(name: string): SystemUser | undefined {
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
    const [login, , uid, gid] = line.split(":");
    if (login === name) return { name, uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/**
 * ensureSystemUser returns the user of that name and creates it (no home, no shell, no password) where it is missing.
 * Only root can create one; several processes may ask for the same name at once.
 */
export function ensureSystemUser(name: string): SystemUser {
  const known = findSystemUser(name);
  if (known) return known;
  const args = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"];
  const made = spawnSync("useradd", [...args, "--shell", "/usr/sbin/nologin", name], {
    encoding: "utf8",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  });
  // Another process may have won the race for the name: what counts is that the user is there now.
  const found = findSystemUser(name);
  if (!found)
    throw new Error(`cannot create the system user ${name}: ${(made.stderr ?? String(made.error)).trim()}`);
  return found;
}
