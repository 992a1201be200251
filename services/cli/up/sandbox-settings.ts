import { chownSync } from "node:fs";
import { join } from "node:path";
import type { DelegatedCgroup } from "./delegated-cgroup.ts";
import { makeFolder } from "./mesh-files.ts";
import type { PartsContext } from "./parts-context.ts";

/** sandboxSettings says where the sandbox keeps its hands and what it may limit them with. */
export function sandboxSettings(
  { options, users }: Pick<PartsContext, "options" | "users">,
  cgroup: DelegatedCgroup | undefined,
): Record<string, string> {
  const folder = join(options.state, "sandbox");
  makeFolder(folder, 0o711);
  if (users.sandbox) chownSync(folder, users.sandbox.uid, users.sandbox.gid);
  return {
    GANGLION_DATA_DIR: folder,
    // With a user of its own the sandbox has subordinate ids: hands that share one would be a silent loss.
    ...(users.sandbox ? { GANGLION_HAND_UIDS: "required" } : {}),
    ...(cgroup ? { GANGLION_CGROUP_ROOT: Object.values(cgroup.folders).join(",") } : {}),
  };
}
