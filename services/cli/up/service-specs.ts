import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { compileCache } from "./compile-cache.ts";
import type { ProcessSpec } from "./managed-process.ts";
import { CHECKOUT } from "./mesh-files.ts";
import type { ServiceInstance } from "./mesh-services.ts";
import { probeReady } from "./probe-ready.ts";
import type { SystemUser } from "./system-user.ts";

/** Everything a service's process starts with. */
export interface ServiceSpecOptions {
  readonly instance: ServiceInstance;
  readonly checkout: string;
  readonly state: string;
  readonly listen: string;
  readonly adminListen: string;
  readonly tlsDir: string;
  readonly logFile: string;
  readonly user: SystemUser | undefined;
  readonly settings: Record<string, string>;
  readonly bootstrap?: () => Promise<string>;
  readonly cgroup?: string;
}

/** baseEnvironment is what every process of ours gets; nothing of the shell's. [A022, A079] */
export function baseEnvironment(): Record<string, string> {
  return { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", TZ: "UTC", NODE_ENV: "production" };
}

/** serviceSpec says how to run a service of the mesh. */
export function serviceSpec(options: ServiceSpecOptions): ProcessSpec {
  const { instance, checkout } = options;
  return {
    name: instance.name,
    command: [nodeProgram(checkout), join(checkout, "services", instance.service, "main.ts")],
    cwd: checkout,
    env: {
      ...baseEnvironment(),
      ...compileCache(options.state, options.user),
      GANGLION_INSTANCE: instance.name,
      GANGLION_LISTEN: options.listen,
      GANGLION_ADMIN_LISTEN: options.adminListen,
      GANGLION_TLS_DIR: options.tlsDir,
      ...options.settings,
      ...(options.bootstrap ? { GANGLION_BOOTSTRAP_FD: "3" } : {}),
    },
    logFile: options.logFile,
    ...(options.user ? { user: options.user } : {}),
    ...(options.bootstrap ? { bootstrap: options.bootstrap } : {}),
    ...(options.cgroup ? { cgroup: options.cgroup } : {}),
    isReady: async () => (await probeReady(options.adminListen)).ok,
  };
}

/** nodeProgram names this Node as the services reach it: the checkout may be theirs under another path only. */
export function nodeProgram(checkout: string): string {
  const own = realpathSync(process.execPath);
  const below = relative(realpathSync(CHECKOUT), own);
  return below.startsWith("..") ? own : resolve(checkout, below);
}

/** hasService says whether a service can be started. */
export function hasService(checkout: string, service: string): boolean {
  return existsSync(join(checkout, "services", service, "main.ts"));
}

/** checkReach fails when a user cannot run Node from the checkout; the reason is said once instead of by each service. */
export function checkReach(checkout: string, user: SystemUser | undefined): void {
  if (!user) return;
  const probe = spawnSync(nodeProgram(checkout), ["--version"], {
    uid: user.uid,
    gid: user.gid,
    cwd: "/",
    env: {},
    stdio: "ignore",
  });
  if (probe.status !== 0) {
    throw new Error(
      `user ${user.name} cannot run ${nodeProgram(checkout)}: a folder above it is closed to it`,
    );
  }
}
