import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import type { HandResources } from "../../domain/hand-driver.ts";
import { type HandIdentity, type JailParts, jailArguments, launchCommand } from "./launch-command.ts";

const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 10_000;
const STDERR_CHARS = 4_096;

/** What a jail is made from. */
export type JailSpec = {
  parts: JailParts;
  identity: HandIdentity | undefined;
  joinFiles: readonly string[];
  resources: HandResources;
  seccomp: Buffer;
};

/**
 * Jail is one bubblewrap process and everything in its process namespace. It dies with this process: bubblewrap and
 * its child ask the kernel for that, and the agent inside ends when its input does.
 */
export class Jail {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #initPid = 0;
  #initStarted: string | undefined;
  #stderr = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => resolve());
      child.once("error", () => resolve());
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("latin1")).slice(-STDERR_CHARS);
    });
    child.stderr?.on("error", () => undefined);
  }

  /** start launches a jail and waits until bubblewrap has made its namespaces. */
  static async start(spec: JailSpec): Promise<Jail> {
    const [program, ...args] = launchCommand(spec.parts, spec.identity, spec.joinFiles, spec.resources);
    const child = spawn(program, args, {
      env: {},
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe", "pipe", "pipe", "pipe"],
    });
    const jail = new Jail(child);
    try {
      await jail.#handOver(spec);
    } catch (error) {
      jail.#child.kill("SIGKILL");
      throw error;
    }
    return jail;
  }

  get input(): Writable {
    return this.#child.stdin!;
  }

  get output(): Readable {
    return this.#child.stdout!;
  }

  /** Host pid of the first process of the jail's process namespace. */
  get initPid(): number {
    return this.#initPid;
  }

  /** Last words of the jail on standard error: for the host's log only, they are the hand's. */
  get lastWords(): string {
    return this.#stderr.trim();
  }

  /** Resolves when the outer process is gone. */
  get exited(): Promise<void> {
    return this.#exited;
  }

  /** kill ends every process of the jail at once: the kernel ends a process namespace with its init. */
  async kill(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined) {
      // Not after the exit: the number may be somebody else's by then.
      sendKill(this.#initPid);
      this.#child.kill("SIGKILL");
    }
    await this.#exited;
    // The outer process may be gone before the kernel has ended the last process inside (case A094).
    await untilEnded(this.#initPid, this.#initStarted);
  }

  async #handOver(spec: JailSpec): Promise<void> {
    const [, , , seccomp, args, info] = this.#child.stdio as unknown as [
      unknown,
      unknown,
      unknown,
      Writable,
      Writable,
      Readable,
    ];
    for (const stream of [this.input, this.output, seccomp, args, info]) {
      // A jail that died meanwhile shows as its exit; a broken pipe says nothing more.
      (stream as Writable).on("error", () => undefined);
    }
    seccomp.end(spec.seccomp);
    args.end(jailArguments(spec.parts));
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), START_TIMEOUT_MS);
    try {
      const answer = await Promise.race([text(info), this.#exited.then(() => "")]);
      const match = /"child-pid":\s*(\d+)/.exec(answer);
      if (!match) {
        await this.#exited;
        throw new Error(`the jail did not start: ${this.lastWords || "no message"}`);
      }
      this.#initPid = Number(match[1]);
      this.#initStarted = startOf(this.#initPid);
    } finally {
      clearTimeout(timer);
    }
  }
}

function sendKill(pid: number): void {
  if (pid <= 1) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

/** When a process started, which tells it from a later one with the same number; undefined when it has ended. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

async function untilEnded(pid: number, started: string | undefined): Promise<void> {
  const deadline = Date.now() + END_TIMEOUT_MS;
  while (started !== undefined && startOf(pid) === started && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
