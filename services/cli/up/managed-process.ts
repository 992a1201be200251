import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { closeSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { lastLines, openLog } from "./log-files.ts";
import { type ProcessRecord, recordOf } from "./process-record.ts";
import type { SystemUser } from "./system-user.ts";

/** How to run one process of the mesh. */
export interface ProcessSpec {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** The whole environment; nothing of ours is added. */
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly user?: SystemUser;
  readonly logFile: string;
  /** Document for descriptor 3, asked for anew at each start; the process waits for it. */
  readonly bootstrap?: () => Promise<string>;
  /** Control group to be put into right after the start. */
  readonly cgroup?: string;
  /** Says whether the process can work. */
  readonly isReady: () => Promise<boolean>;
}

/** Where a process stands. */
export type ProcessState = "stopped" | "starting" | "ready" | "waiting";

const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5000;
/** A process that lived this long has earned a quick restart again. */
const STEADY_MS = 10_000;
const READY_POLL_MS = 25;
const EXIT_CONFIG = 78;
/** Whoever dies this often while the mesh starts will not come up. */
const MAX_START_DEATHS = 6;

/** ManagedProcess keeps one process of the mesh running until it is stopped. Emits "change". */
export class ManagedProcess extends EventEmitter<{ change: [] }> {
  readonly spec: ProcessSpec;
  state: ProcessState = "stopped";
  restarts = 0;
  lastExit: string | undefined;
  record: ProcessRecord | undefined;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #delayMs = FIRST_DELAY_MS;
  #timer: NodeJS.Timeout | undefined;
  #wanted = false;
  #fatal: string | undefined;
  #noLogin: string | undefined;

  constructor(spec: ProcessSpec) {
    super();
    this.spec = spec;
  }

  /** Starts the process and resolves when it is ready; rejects when it does not get there in time. */
  async start(timeoutMs: number): Promise<void> {
    this.#wanted = true;
    this.#spawn();
    for (const deadline = Date.now() + timeoutMs; !(await this.#probe()); ) {
      if (!this.#wanted) throw new Error(`${this.spec.name} was stopped`);
      if (this.#fatal) throw new Error(this.#fatal);
      if (this.restarts >= MAX_START_DEATHS) throw new Error(this.#complaint("does not stay up"));
      if (Date.now() > deadline) throw new Error(this.#complaint("is not ready"));
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
  }

  /** Ends the process, gently and after the grace not, and keeps it ended. */
  async stop(graceMs: number): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child) {
      signalGroup(child, "SIGTERM");
      const force = setTimeout(() => signalGroup(child, "SIGKILL"), graceMs);
      await this.#exited;
      clearTimeout(force);
    }
    this.#move("stopped");
  }

  #spawn(): void {
    const { command, env, cwd, user, logFile } = this.spec;
    const log = openLog(logFile);
    const startedAt = Date.now();
    const child = spawn(command[0], command.slice(1), {
      env,
      cwd,
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
      // Its own session: signals to our group and a closing terminal do not reach it.
      detached: true,
      stdio: ["ignore", log, log, ...(this.spec.bootstrap ? ["pipe" as const] : [])],
    });
    closeSync(log);
    this.#child = child;
    this.#exited = Promise.race([once(child, "exit"), once(child, "error")]);
    child.once("error", (error) => this.#ended(child, error.message, startedAt));
    child.once("exit", (code, signal) =>
      this.#ended(child, signal ? `was ended by ${signal}` : `ended with ${code}`, startedAt),
    );
    if (this.spec.bootstrap) this.#handOver(this.spec.bootstrap, child);
    this.record = child.pid === undefined ? undefined : recordOf(child.pid);
    if (this.spec.cgroup && child.pid) joinCgroup(this.spec.cgroup, child.pid);
    this.#move("starting");
  }

  /** The document comes while the process loads; without one the process cannot live, and is started again later. */
  #handOver(bootstrap: () => Promise<string>, child: ChildProcess): void {
    const pipe = child.stdio[3] as Writable;
    // The process may die before it has read.
    pipe.on("error", () => {});
    bootstrap().then(
      (document) => pipe.end(document),
      (error: Error) => {
        console.error(`${this.spec.name} has no login: ${error.message}`);
        this.#noLogin = `has no login: ${error.message}`;
        signalGroup(child, "SIGKILL");
      },
    );
  }

  #ended(child: ChildProcess, how: string, startedAt: number): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.record = undefined;
    this.lastExit = this.#noLogin ?? how;
    this.#noLogin = undefined;
    if (child.exitCode === EXIT_CONFIG) this.#fatal = this.#complaint("has a wrong configuration");
    if (!this.#wanted) return;
    if (Date.now() - startedAt > STEADY_MS) this.#delayMs = FIRST_DELAY_MS;
    this.#again();
  }

  #again(): void {
    this.restarts += 1;
    this.#move("waiting");
    this.#timer = setTimeout(() => {
      try {
        this.#spawn();
      } catch (error) {
        // The machine is out of something; it may have it again later.
        this.lastExit = `could not be started: ${(error as Error).message}`;
        this.#again();
        return;
      }
      this.#watchReady().catch(() => {});
    }, this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_DELAY_MS);
  }

  /** After a restart nobody waits in start(); the state still has to become true. */
  async #watchReady(): Promise<void> {
    const child = this.#child;
    while (child && this.#child === child && this.state === "starting" && !(await this.#probe())) {
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS * 4));
    }
  }

  async #probe(): Promise<boolean> {
    const child = this.#child;
    if (!child || !(await this.spec.isReady()) || this.#child !== child) return false;
    if (this.state !== "ready") this.#move("ready");
    return true;
  }

  #move(to: ProcessState): void {
    this.state = to;
    this.emit("change");
  }

  #complaint(what: string): string {
    const tail = lastLines(this.spec.logFile, 8);
    const exit = this.lastExit ? ` (it ${this.lastExit})` : "";
    return [`${this.spec.name} ${what}${exit}; the end of ${this.spec.logFile}:`, ...tail].join("\n  ");
  }
}

function joinCgroup(folder: string, pid: number): void {
  try {
    writeFileSync(join(folder, "cgroup.procs"), String(pid));
  } catch (error) {
    console.error(`process ${pid} could not join ${folder}: ${(error as Error).message}`);
  }
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-(child.pid as number), signal);
  } catch {
    child.kill(signal);
  }
}
