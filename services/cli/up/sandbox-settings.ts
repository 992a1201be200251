import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DelegatedCgroup } from "./delegated-cgroup.ts";
import type { PartsContext } from "./parts-context.ts";

/** sandboxSettings says where the sandbox keeps its hands and what it may limit them with. */
export function sandboxSettings(
  { options }: Pick<PartsContext, "options">,
  cgroup: DelegatedCgroup | undefined,
): Record<string, string> {
  mkdirSync(join(options.state, "sandbox"), { recursive: true });
  return cgroup ? { GANGLION_CGROUP_ROOT: Object.values(cgroup.folders)[0] as string } : {};
}
