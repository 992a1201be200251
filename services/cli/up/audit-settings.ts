import { chownSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "./mesh-files.ts";
import type { PartsContext } from "./parts-context.ts";

/** auditSettings gives mcp-proxy a folder of its own for what the audit log has outside of the database. */
export function auditSettings({
  options,
  users,
}: Pick<PartsContext, "options" | "users">): Record<string, string> {
  const folder = join(options.state, "audit");
  makeFolder(folder, 0o700);
  if (users.proxy) chownSync(folder, users.proxy.uid, users.proxy.gid);
  return { GANGLION_AUDIT_DIR: folder };
}
