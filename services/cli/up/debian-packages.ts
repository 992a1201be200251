import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";

/**
 * Programs that hands need, and the Debian package each comes in. newuidmap gives every hand a user id of its own; only
 * root can grant the ids, so an ordinary user gains nothing from it.
 */
const NEEDED = [
  { program: "bwrap", package: "bubblewrap", onlyAsRoot: false },
  { program: "newuidmap", package: "uidmap", onlyAsRoot: true },
] as const;

const FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/** missingPackages lists the Debian packages that are needed and not there. */
export function missingPackages(isRoot = process.getuid?.() === 0): string[] {
  const needed = NEEDED.filter(({ onlyAsRoot }) => isRoot || !onlyAsRoot);
  return needed.filter(({ program }) => !findProgram(program)).map((one) => one.package);
}

/** findProgram looks a program up where Debian keeps them. */
export function findProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** installLine is what somebody who is not root has to type. */
export function installLine(packages: readonly string[]): string {
  return `sudo apt-get install -y --no-install-recommends ${packages.join(" ")}`;
}

/** installPackages installs them as root; throws with apt's complaint. */
export function installPackages(packages: readonly string[]): void {
  const install = () => apt(["install", "-y", "--no-install-recommends", ...packages]);
  // A fresh machine has no package lists, and most others have good ones: ask for them only after the first failure.
  if (install().status === 0) return;
  apt(["update"]);
  const again = install();
  if (again.status !== 0) {
    const complaint = `${again.stderr}`.trim().split("\n").slice(-3).join(" ");
    throw new Error(`apt-get could not install ${packages.join(" ")}: ${complaint}`);
  }
}

function apt(args: string[]) {
  // The caller's environment: it may name the proxy through which this machine reaches its mirror.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" };
  return spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=120", ...args], { encoding: "utf8", env });
}
