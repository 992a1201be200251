import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { OutputCollector } from "./output-collector.ts";
import { findCallProcesses, killCallProcesses, listBackgroundProcesses } from "./process-table.ts";
import type { HandLimits, ToolResult } from "./protocol.ts";
import { STATE_FILES } from "./shell-script.ts";
import { ToolError } from "./tool-error.ts";
import { WaitingShell } from "./waiting-shell.ts";

/** How long after the shell's exit its output must be silent before the call returns, and at most (B065, B067). */
const DRAIN_IDLE_MS = 25;
const DRAIN_MAX_MS = 1_000;
const KILL_GRACE_MS = 200;
const MAX_LISTED = 20;

/** What the shell needs to know of the hand it lives in. */
export type ShellOptions = {
  workspace: string;
  stateFolder: string;
  limits: HandLimits;
  /** Called when processes of a call could not be killed: the hand as a whole has to go. */
  onUnclean: (detail: string) => void;
};

type BashInput = { command?: string; restart?: boolean; timeout_ms?: number };
type End = { exitCode: number | null; isTimedOut: boolean; isCancelled: boolean; isClean: boolean };

/** Shell is the hand's persistent shell. Commands run one after another. */
export class Shell {
  readonly #options: ShellOptions;
  #queue: Promise<unknown> = Promise.resolve();
  #next: WaitingShell | undefined;

  constructor(options: ShellOptions) {
    this.#options = options;
    mkdirSync(options.stateFolder, { recursive: true, mode: 0o700 });
  }

  /** run executes one bash call; it rejects with ToolError when the input does not fit. */
  run(input: BashInput, signal: AbortSignal): Promise<ToolResult> {
    const turn = this.#queue.then(() => this.#runNow(input, signal));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #runNow(input: BashInput, signal: AbortSignal): Promise<ToolResult> {
    const timeoutMs = this.#timeoutOf(input);
    if (input.restart) this.#forget();
    if (input.command === undefined || input.command.trim() === "") {
      if (input.restart) return plainResult("bash session restarted");
      throw new ToolError("bash: command is required");
    }
    if (input.command.includes("\0")) throw new ToolError("bash: command holds a NUL character");
    if (signal.aborted)
      return { ...plainResult("(cancelled before it started)"), isError: true, isCancelled: true };
    return this.#execute(input.command, timeoutMs, signal);
  }

  #timeoutOf(input: BashInput): number {
    const { defaultTimeoutMs, maxTimeoutMs } = this.#options.limits;
    const timeoutMs = input.timeout_ms ?? defaultTimeoutMs;
    if (Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= maxTimeoutMs) return timeoutMs;
    throw new ToolError(`bash: timeout_ms must be a whole number from 1 to ${maxTimeoutMs}`);
  }

  #forget(): void {
    this.#next?.dismiss();
    this.#next = undefined;
    rmSync(this.#options.stateFolder, { recursive: true, force: true });
    mkdirSync(this.#options.stateFolder, { recursive: true, mode: 0o700 });
  }

  async #execute(command: string, timeoutMs: number, signal: AbortSignal): Promise<ToolResult> {
    const { stateFolder, limits } = this.#options;
    const shell = this.#takeShell();
    const commandFile = `${stateFolder}/command-${shell.mark}`;
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    rmSync(`${stateFolder}/complete`, { force: true });
    // A file, because one argument may not exceed 128 KiB.
    writeFileSync(commandFile, command, { mode: 0o600 });
    const collector = new OutputCollector(limits);
    const drained = drain(shell.child, collector);
    shell.begin(commandFile);
    const end = await settle(shell, timeoutMs, signal);
    await drained.afterExit();
    rmSync(commandFile, { force: true });
    this.#keepState();
    if (!end.isClean) this.#options.onUnclean("processes of a command could not be killed");
    const own = new Set(shell.pid === undefined ? [] : findCallProcesses(shell.pid, shell.mark));
    const result = describe(collector, end, timeoutMs, own);
    this.warm();
    return result;
  }

  /** warm starts the next command's shell ahead of the command. */
  warm(): void {
    try {
      this.#next ??= new WaitingShell(this.#options);
    } catch {
      // A hand full of processes or files; the next command says so if it is still full then.
    }
  }

  #takeShell(): WaitingShell {
    const next = this.#next;
    this.#next = undefined;
    // A command may have killed it while it waited.
    if (next && !next.isDead) return next;
    try {
      return new WaitingShell(this.#options);
    } catch {
      throw new ToolError("bash: no shell can be started: the hand has too many processes or open files");
    }
  }

  /** Takes over what a shell that ended in good order left; one that was killed changes nothing. */
  #keepState(): void {
    const { stateFolder } = this.#options;
    if (!existsSync(`${stateFolder}/complete`)) return;
    for (const name of STATE_FILES) {
      if (existsSync(`${stateFolder}/${name}.new`))
        renameSync(`${stateFolder}/${name}.new`, `${stateFolder}/${name}`);
    }
  }
}

/** plainResult is the result of a call that produced text and no process output. */
export function plainResult(text: string): ToolResult {
  return {
    isError: false,
    text: text === "" ? "(no output)" : text,
    rawBase64: "",
    outputBytes: 0,
    isTruncated: false,
    exitCode: null,
    isTimedOut: false,
    isCancelled: false,
    background: [],
  };
}

function settle(shell: WaitingShell, timeoutMs: number, signal: AbortSignal): Promise<End> {
  const { child, mark } = shell;
  return new Promise((resolve, reject) => {
    let stop: "timeout" | "cancel" | undefined;
    const kill = (reason: "timeout" | "cancel") => {
      if (stop !== undefined || child.pid === undefined) return;
      stop = reason;
      void killCallProcesses(child.pid, mark, KILL_GRACE_MS).then((isClean) =>
        resolve({
          exitCode: null,
          isTimedOut: reason === "timeout",
          isCancelled: reason === "cancel",
          isClean,
        }),
      );
    };
    const onAbort = () => kill("cancel");
    const timer = setTimeout(() => kill("timeout"), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    child.once("error", (error) => {
      done();
      reject(new ToolError(`bash: cannot start the shell: ${error.message}`));
    });
    child.once("exit", (code, killedBy) => {
      done();
      if (stop !== undefined) return;
      resolve({
        exitCode: code ?? 128 + signalNumber(killedBy),
        isTimedOut: false,
        isCancelled: false,
        isClean: true,
      });
    });
  });
}

function signalNumber(name: NodeJS.Signals | null): number {
  const known: Partial<Record<NodeJS.Signals, number>> = {
    SIGKILL: 9,
    SIGTERM: 15,
    SIGSEGV: 11,
    SIGABRT: 6,
    SIGINT: 2,
  };
  return (name && known[name]) ?? 0;
}

/**
 * Reads both pipes until their end, for as long as anything holds them open: a background job must neither block
 * on a full pipe nor be killed by a closed one. Only what arrives before the drain window closes is collected.
 */
function drain(child: ChildProcess, collector: OutputCollector): { afterExit: () => Promise<void> } {
  let isCollecting = true;
  let openPipes = 2;
  let received = 0;
  let onEnd: (() => void) | undefined;
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on("data", (chunk: Buffer) => {
      received += 1;
      if (isCollecting) collector.push(chunk);
    });
    stream.on("error", () => undefined);
    stream.once("close", () => {
      openPipes -= 1;
      if (openPipes === 0) onEnd?.();
    });
  }
  const afterExit = async () => {
    const deadline = Date.now() + DRAIN_MAX_MS;
    while (openPipes > 0 && Date.now() < deadline) {
      const before = received;
      await new Promise<void>((resolve) => {
        onEnd = resolve;
        // setImmediate comes after the poll phase: what already lies in the pipe is read before we look.
        setTimeout(() => setImmediate(resolve), DRAIN_IDLE_MS);
      });
      if (received === before) break;
    }
    isCollecting = false;
  };
  return { afterExit };
}

function describe(collector: OutputCollector, end: End, timeoutMs: number, own: Set<number>): ToolResult {
  const output = collector.finish();
  const background = listBackgroundProcesses(MAX_LISTED);
  const notes: string[] = [];
  if (end.isTimedOut)
    notes.push(`[timed out after ${timeoutMs} ms; the command and its processes were killed]`);
  if (end.isCancelled) notes.push("[cancelled; the command and its processes were killed]");
  if (end.exitCode !== null && end.exitCode !== 0) notes.push(`[exit code ${end.exitCode}]`);
  const started = background.filter((job) => own.has(job.pid)).map((job) => `${job.pid} ${job.command}`);
  if (started.length > 0) notes.push(`[still running in the background: ${started.join("; ")}]`);
  const text = [output.text.replace(/\n+$/, ""), ...notes].filter((part) => part !== "").join("\n");
  return {
    ...output,
    isError: end.exitCode !== 0,
    text: text === "" ? "(no output)" : text,
    exitCode: end.exitCode,
    isTimedOut: end.isTimedOut,
    isCancelled: end.isCancelled,
    background,
  };
}
