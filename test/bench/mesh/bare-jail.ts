import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { installAgent, installEtc } from "../../../services/sandbox/drivers/bubblewrap/install-parts.ts";
import { ARGUMENTS_FD, jailArguments } from "../../../services/sandbox/drivers/bubblewrap/launch-command.ts";
import { buildSeccompFilter } from "../../../services/sandbox/drivers/bubblewrap/seccomp-filter.ts";
import type { CleanUps } from "../report/clean-ups.ts";

const SANDBOX_USER = "ganglion-sandbox";

/**
 * prepareBareJail returns what runs /bin/true in a bubblewrap with the hands' own arguments and system call filter, as
 * the sandbox's user, and resolves when it has ended. Nothing of ours runs in it: no agent, no limits, no id mapping.
 */
export function prepareBareJail(cleanUps: CleanUps): () => Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "ganglion-bench-jail-"));
  cleanUps.add(() => rmSync(root, { recursive: true, force: true }));
  chmodSync(root, 0o755);
  const [agentFolder, etcFolder, workFolder] = ["agent", "etc", "work"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  installAgent(agentFolder);
  installEtc(etcFolder);
  mkdirSync(workFolder, { mode: 0o700 });
  const user = process.getuid?.() === 0 ? sandboxUser() : undefined;
  if (user) chownSync(workFolder, user.uid, user.gid);
  // A mount is a mount, whatever the file: Node itself may lie where the sandbox's user cannot go.
  const parts = { nodeBinary: "/bin/true", agentFolder, etcFolder, workFolder };
  const [seccomp, jail] = [buildSeccompFilter(), jailArguments(parts)];
  return async () => {
    const child = spawn("/usr/bin/bwrap", ["--args", String(ARGUMENTS_FD), "--", "/bin/true"], {
      ...user,
      env: {},
      cwd: "/",
      stdio: ["ignore", "ignore", "inherit", "pipe", "pipe", "pipe"],
    });
    const [, , , filter, args, info] = child.stdio as unknown as Writable[];
    for (const stream of [filter, args, info]) stream?.on("error", () => {});
    filter?.end(seccomp);
    args?.end(jail);
    const [code] = (await once(child, "exit")) as [number | null];
    if (code !== 0) throw new Error(`the bare jail ended with ${code}`);
  };
}

function sandboxUser(): { uid: number; gid: number } {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${SANDBOX_USER}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  if (uid === undefined || gid === undefined) throw new Error(`there is no user ${SANDBOX_USER}`);
  return { uid: Number(uid), gid: Number(gid) };
}
