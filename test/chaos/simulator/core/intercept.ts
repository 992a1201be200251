import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { currentProcess, type SimTimer } from "./virtual-time.ts";

/** Where the runs' wall clocks begin. Each run begins later than the one before: ids that are made rise for ever. */
const FIRST_DAY = Date.UTC(2101, 0, 1);
const DAY_MS = 86_400_000;
let day = 0;

/**
 * Runs work in which code of a simulated process gets the simulated clock, timers and randomness, by replacing the
 * globals and node:crypto's sources. Code outside of a simulated process gets the real ones. This is the one seam, and
 * it lies in the test alone: nothing in the services knows of it.
 */
export async function intercepted<T>(work: () => Promise<T>): Promise<T> {
  const restore = install();
  try {
    return await work();
  } finally {
    restore();
  }
}

/** Begins a new day, so that no id of this run is older than one of the run before. */
export function nextDay(): void {
  day++;
}

type Callback = (...args: unknown[]) => void;

function install(): () => void {
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    now: Date.now,
    monotonic: performance.now,
    random: Math.random,
    timeout: AbortSignal.timeout,
    randomBytes: crypto.randomBytes,
    randomUUID: crypto.randomUUID,
  };
  const clear = (timer: unknown): void => {
    if (isSimTimer(timer)) timer.clear();
    else real.clearTimeout(timer as NodeJS.Timeout);
  };
  Object.assign(globalThis, {
    setTimeout: (run: Callback, ms?: number, ...args: unknown[]) => {
      const process = currentProcess.getStore();
      return process
        ? process.timer(ms ?? 0, () => run(...args))
        : (real.setTimeout as (...all: unknown[]) => unknown)(run, ms, ...args);
    },
    setInterval: (run: Callback, ms?: number, ...args: unknown[]) => {
      const process = currentProcess.getStore();
      if (!process) return (real.setInterval as (...all: unknown[]) => unknown)(run, ms, ...args);
      const again = (): void => {
        timer.entry = process.timer(ms ?? 0, again).entry;
        run(...args);
      };
      const timer = process.timer(ms ?? 0, again);
      return timer;
    },
    clearTimeout: clear,
    clearInterval: clear,
  });
  Date.now = () => {
    const process = currentProcess.getStore();
    return process
      ? Math.floor(FIRST_DAY + day * DAY_MS + process.time.now + process.skewMs)
      : real.now.call(Date);
  };
  performance.now = () => currentProcess.getStore()?.monotonic() ?? real.monotonic.call(performance);
  Math.random = () => currentProcess.getStore()?.random.next() ?? real.random();
  AbortSignal.timeout = (ms) => {
    const process = currentProcess.getStore();
    if (!process) return real.timeout.call(AbortSignal, ms);
    const controller = new AbortController();
    process.timer(ms, () => controller.abort(new DOMException("timed out", "TimeoutError")));
    return controller.signal;
  };
  const source = crypto as unknown as Record<string, unknown>;
  source.randomBytes = (count: number) =>
    currentProcess.getStore()?.random.bytes(count) ?? real.randomBytes(count);
  source.randomUUID = () => {
    const process = currentProcess.getStore();
    if (!process) return real.randomUUID();
    const hex = process.random.bytes(16).toString("hex");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  };
  syncBuiltinESMExports();
  return () => {
    const { setTimeout, clearTimeout, setInterval, clearInterval } = real;
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
    Date.now = real.now;
    performance.now = real.monotonic;
    Math.random = real.random;
    AbortSignal.timeout = real.timeout;
    source.randomBytes = real.randomBytes;
    source.randomUUID = real.randomUUID;
    syncBuiltinESMExports();
  };
}

function isSimTimer(timer: unknown): timer is SimTimer {
  return typeof timer === "object" && timer !== null && "entry" in timer;
}
