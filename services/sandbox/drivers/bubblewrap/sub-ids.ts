import { readFileSync } from "node:fs";

/** A range of subordinate ids that a user may map into its user namespaces. */
export type IdRange = { first: number; count: number };

/** Host ids that hands may have: user and group ids, paired by index. */
export type SubIds = { uids: IdRange; gids: IdRange };

/** findSubIds reads the ranges of a user from the host's tables; undefined when it has none. */
export function findSubIds(
  user: { name: string; uid: number },
  files = { uids: "/etc/subuid", gids: "/etc/subgid" },
): SubIds | undefined {
  const uids = findRange(readText(files.uids), user);
  const gids = findRange(readText(files.gids), user);
  return uids && gids ? { uids, gids } : undefined;
}

function findRange(table: string, user: { name: string; uid: number }): IdRange | undefined {
  for (const line of table.split("\n")) {
    const [owner, first, count] = line.trim().split(":");
    if (owner !== user.name && owner !== String(user.uid)) continue;
    const range = { first: Number(first), count: Number(count) };
    // Ids below 1000 belong to the system; a table that grants them is not one we use.
    if (
      Number.isInteger(range.first) &&
      range.first >= 1000 &&
      Number.isInteger(range.count) &&
      range.count > 0
    ) {
      return range;
    }
  }
  return undefined;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
