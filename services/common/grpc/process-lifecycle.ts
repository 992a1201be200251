import type { Logger } from "../log/create-logger.ts";

/** sysexits: a bug. */
export const EXIT_SOFTWARE = 70;

/** How the process is to stop. */
export interface LifecycleHooks {
  /** First SIGTERM or SIGINT: finish what is running, then return. */
  drain: () => Promise<void>;
  /** Second signal: give up everything at once. */
  force: () => void;
}

/**
 * What every service process does about signals and escaped errors. SIGTERM drains and exits 0, a
 * second one exits at once; an error nobody caught is logged and ends the process with 70, because
 * its state can no longer be trusted; SIGUSR1 would open Node's inspector and is swallowed. [A096]
 */
export function installLifecycle(log: Logger, hooks: LifecycleHooks): void {
  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) {
      log.warn({ signal }, "stopping now");
      hooks.force();
      process.exit(0);
    }
    stopping = true;
    log.info({ signal }, "draining");
    hooks.drain().then(
      () => {
        log.info("stopped");
        process.exit(0);
      },
      (error) => die(error, "draining failed"),
    );
  };
  const die = (error: unknown, message: string) => {
    log.fatal({ err: error }, message);
    process.exit(EXIT_SOFTWARE);
  };
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
  process.on("uncaughtException", (error) => die(error, "uncaught exception"));
  process.on("unhandledRejection", (error) => die(error, "unhandled rejection"));
  process.on("SIGUSR1", () => log.warn("SIGUSR1 ignored"));
}
