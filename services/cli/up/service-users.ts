import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { ensureSystemUser, type SystemUser } from "./system-user.ts";

/** Users of the mesh by what runs as them; empty when `up` was not started as root. */
export type ServiceUsers = Partial<Record<ServiceUserName, SystemUser>>;

/** What has a user of its own. */
export type ServiceUserName = (typeof NAMES)[number];

const NAMES = ["session", "gateway", "sandbox", "proxy", "harness", "vault", "pg", "model"] as const;
/** One uid for each hand, and room for user namespaces. */
const SUB_IDS = 65_536;
const FIRST_SUB_ID = 524_288;

/** prepareUsers makes the unprivileged users of the services; as an ordinary user everything runs as that one. */
export function prepareUsers(): ServiceUsers {
  if (process.getuid?.() !== 0) return {};
  const users = Object.fromEntries(
    NAMES.map((name) => [name, ensureSystemUser(`ganglion-${name}`)]),
  ) as Record<ServiceUserName, SystemUser>;
  ensureSubIds(users.sandbox.name);
  return users;
}

/** Hands run under ids that are nobody else's; the kernel lets ganglion-sandbox use those that /etc/subuid lists. */
function ensureSubIds(user: string): void {
  for (const [file, option] of [
    ["/etc/subuid", "--add-subuids"],
    ["/etc/subgid", "--add-subgids"],
  ] as const) {
    const ranges = readRanges(file);
    if (ranges.some((range) => range.name === user && range.count >= SUB_IDS)) continue;
    const first = Math.max(FIRST_SUB_ID, ...ranges.map((range) => range.first + range.count));
    const made = spawnSync("usermod", [option, `${first}-${first + SUB_IDS - 1}`, user], {
      encoding: "utf8",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    });
    if (made.status !== 0)
      throw new Error(`cannot give ${user} subordinate ids: ${made.stderr || made.error}`);
  }
}

function readRanges(file: string): { name: string; first: number; count: number }[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line.includes(":"))
      .map((line) => line.split(":"))
      .map(([name = "", first, count]) => ({ name, first: Number(first), count: Number(count) }));
  } catch {
    return [];
  }
}
