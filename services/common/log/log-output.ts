import { pino } from "pino";

// Lines that come together go out together: a write each would be a quarter of what a small call costs.
const PATIENCE_MS = 10;
const MOST_BYTES = 8 * 1024;
/** pino's number for warnings; these and what is graver go out at once, with all that was said before. */
const WARNING = 40;

/** Standard output as a logger writes it. */
export interface LogOutput {
  readonly destination: ReturnType<typeof pino.destination>;
  /** A line of that level was written. */
  wrote(level: number): void;
}

let opened: LogOutput | undefined;

/**
 * Standard output, the same for all loggers of a process. A line of `info` or `debug` waits for 10 ms at most, and goes out when the process
 * ends; only a process that is killed may take its last ones with it.
 */
export function logOutput(): LogOutput {
  opened ??= open();
  return opened;
}

function open(): LogOutput {
  const destination = pino.destination({ dest: 1, sync: true, minLength: MOST_BYTES });
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    // Not flushSync: that one also waits for the disk, and for a reader that is gone.
    destination.flush();
  };
  process.on("exit", flush);
  return {
    destination,
    wrote: (level) => {
      if (level >= WARNING) flush();
      else timer ??= setTimeout(flush, PATIENCE_MS).unref();
    },
  };
}
