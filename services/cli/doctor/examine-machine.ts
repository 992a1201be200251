import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { VERSION } from "../../common/version.ts";
import { installLine, missingPackages } from "../up/debian-packages.ts";
import { type Finding, ill, weak, well } from "./finding.ts";
import type { MeshReport } from "./mesh-report.ts";

/** examineMachine looks at what the machine gives: programs, users, control groups. */
export function examineMachine(report: MeshReport | undefined): Finding[] {
  const missing = missingPackages();
  const findings = [well("versions", `ganglion ${VERSION}, Node ${process.version}`)];
  findings.push(
    missing.length === 0
      ? well("packages", "bubblewrap and uidmap are installed")
      : ill("packages", `${missing.join(" and ")} missing: hands cannot be made`, installLine(missing)),
  );
  if (!report) return findings;
  const { separateUser, cgroup } = report.hands;
  findings.push(
    separateUser
      ? well("users", "every service runs as a user of its own")
      : weak(
          "users",
          "all services share your user: each could read another's memory",
          "start as root: sudo ganglion up",
        ),
  );
  const { username, uid } = userInfo();
  const owner = separateUser ? { name: "ganglion-sandbox" } : { name: username, uid };
  findings.push(
    !hasSubIds(owner)
      ? weak(
          "hands",
          "hands share the user of the sandbox: only namespaces keep them apart",
          "start as root: sudo ganglion up",
        )
      : well("hands", "every hand gets a user id of its own"),
  );
  findings.push(
    cgroup > 0
      ? well("limits", `memory, processes and processor time of hands are limited (cgroup v${cgroup})`)
      : weak(
          "limits",
          "no control groups: a hand's memory and processes are limited by rlimits only",
          "start as root",
        ),
  );
  return findings;
}

/** What the sandbox service needs to give hands ids of their own: a range in both tables of the host. */
function hasSubIds(user: { name: string; uid?: number }): boolean {
  const owners = [`${user.name}:`, ...(user.uid === undefined ? [] : [`${user.uid}:`])];
  return ["/etc/subuid", "/etc/subgid"].every((table) => {
    try {
      const lines = readFileSync(table, "utf8").split("\n");
      return lines.some((line) => owners.some((owner) => line.startsWith(owner)));
    } catch {
      return false;
    }
  });
}
