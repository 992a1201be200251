import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, on, once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** A service process. */
export interface RunningService {
  readonly process: ChildProcess;
  /** Its "listening" line: addr, admin_addr. */
  readonly listening: { addr: string; admin_addr?: string };
  /** Log lines so far. */
  lines(): Record<string, unknown>[];
  /** The first log line that fits, also one that is still to come: a pipe may be slower than an answer. */
  line(fits: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  /** All it has printed so far, on both streams. */
  output(): string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
  stop(): Promise<void>;
}

const LINE_TIMEOUT_MS = 10_000;

/** How a service is started. */
export interface StartOptions {
  env: Record<string, string>;
  args?: string[];
  /** Module that is loaded before its main file. */
  preload?: string;
  /** Document for descriptor 3. */
  bootstrap?: object;
}

/** Starts a main file with an environment made from nothing; resolves at its "listening" line. */
export async function startService(main: URL, options: StartOptions): Promise<RunningService> {
  const service = spawnService(main, options);
  const listening = await Promise.race([
    service.listening,
    service.exit.then((code) => {
      throw new Error(`${main.pathname} ended with ${code}: ${service.output()}`);
    }),
  ]);
  return { ...service, listening };
}

/** Runs a main file to its end. */
export async function runService(
  main: URL,
  options: StartOptions,
): Promise<{ exit: number | NodeJS.Signals; output: string }> {
  const service = spawnService(main, options);
  const exit = await service.exit;
  return { exit, output: service.output() };
}

function spawnService(main: URL, { env, args = [], bootstrap, preload }: StartOptions) {
  const before = preload === undefined ? [] : ["--import", preload];
  const child = spawn(process.execPath, [...before, main.pathname, ...args], {
    env: { ...(bootstrap ? { GANGLION_BOOTSTRAP_FD: "3" } : {}), ...env },
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const pipe = child.stdio[3] as Writable;
  // A process that refuses to start never reads it.
  pipe.on("error", () => {});
  pipe.end(bootstrap ? JSON.stringify(bootstrap) : undefined);
  const printed: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const written = new EventEmitter<{ line: [Record<string, unknown>] }>();
  const listening = Promise.withResolvers<{ addr: string; admin_addr?: string }>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream as Readable }).on("line", (line) => {
      printed.push(line);
      const parsed = parseLine(line);
      if (!parsed) return;
      lines.push(parsed);
      written.emit("line", parsed);
      if (parsed.msg === "listening") listening.resolve(parsed as { addr: string });
    });
  }
  const exit = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    process: child,
    listening: listening.promise,
    lines: () => lines,
    line: async (fits: (line: Record<string, unknown>) => boolean) => {
      const found = lines.find(fits);
      if (found) return found;
      for await (const [line] of on(written, "line", { signal: AbortSignal.timeout(LINE_TIMEOUT_MS) }))
        if (fits(line)) return line;
      throw new Error("unreachable: the loop ends by its signal alone");
    },
    output: () => printed.join("\n"),
    exit,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exit;
    },
  };
}

function parseLine(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
