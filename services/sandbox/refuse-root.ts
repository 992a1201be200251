import { EXIT_CONFIG } from "../common/config/load-config.ts";

/**
 * refuseRoot ends a process that runs as root: bubblewrap maps a hand to the user that starts it, so a hand made by
 * root is the host's root towards every file it can reach.
 */
export function refuseRoot(): void {
  if (process.getuid?.() !== 0 && process.geteuid?.() !== 0) return;
  process.stderr.write("sandbox: refuses to run as root; start it as an unprivileged user of its own\n");
  process.exit(EXIT_CONFIG);
}
