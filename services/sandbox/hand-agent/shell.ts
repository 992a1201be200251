import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { OutputCollector } from "./output-collector.ts";
import { OutputFiles } from "./output-files.ts";
import { findCallProcesses, killCallProcesses } from "./process-table.ts";
import type { HandLimits, ToolResult } from "./protocol.ts";
import { cancelledResult, describeRun, plainResult } from "./results.ts";
import { STATE_FILES } from "./shell-script.ts";
import { ToolError } from "./tool-error.ts";
import { WaitingShell } from "./waiting-shell.ts";

/** How long after the shell's exit its output must be silent before the call returns, and at most (B065, B067). */
const DRAIN_IDLE_MS = 25;
const DRAIN_MAX_MS = 1_000;
const KILL_GRACE_MS = 200;

/** What the shell needs to know of the hand it lives in. */
export type ShellOptions = {
  workspace: string;
  stateFolder: string;
  /** Where long outputs are kept as they were. */
  outputFolder: string;
  limits: HandLimits;
  /** Environment variables of commands, beside the base ones, which win. */
  environment: Readonly<Record<string, string>>;
  /** Called when processes of a call could not be killed: the hand as a whole has to go. */
  onUnclean: (detail: string) => void;
};

/** One bash call. */
export type ShellCall = {
  input: { command?: string; restart?: boolean; timeout_ms?: number };
  /** Timeout where the input names none, and the most that it may name. */
  timeoutMs: number;
  signal: AbortSignal;
  onStart: () => void;
};

type End = { exitCode: number | null; isTimedOut: boolean; isCancelled: boolean; isClean: boolean };

/** Shell is the hand's persistent shell. Commands run one after another. */
export class Shell {
  readonly #options: ShellOptions;
  readonly #outputs: OutputFiles;
  #queue: Promise<unknown> = Promise.resolve();
  #next: WaitingShell | undefined;

  constructor(options: ShellOptions) {
    this.#options = options;
    this.#outputs = new OutputFiles(options.outputFolder);
    mkdirSync(options.stateFolder, { recursive: true, mode: 0o700 });
  }

  /**
   * run executes one bash call; it rejects with ToolError when the input does not fit. One that is cancelled while it
   * waits for others answers at once (case B007).
   */
  run(call: ShellCall): Promise<ToolResult> {
    const waiting = Promise.withResolvers<ToolResult>();
    const giveUp = () => waiting.resolve(cancelledResult());
    call.signal.addEventListener("abort", giveUp, { once: true });
    const turn = this.#queue.then(() => {
      if (call.signal.aborted) return cancelledResult();
      call.signal.removeEventListener("abort", giveUp);
      call.onStart();
      return this.#runNow(call);
    });
    this.#queue = turn.catch(() => undefined);
    return Promise.race([turn, waiting.promise]);
  }

  /** warm starts the next command's shell ahead of the command. */
  warm(): void {
    try {
      this.#next ??= new WaitingShell(this.#options);
    } catch {
      // A hand full of processes or files; the next command says so if it is still full then.
    }
  }

  async #runNow({ input, timeoutMs, signal }: ShellCall): Promise<ToolResult> {
    const ownTimeoutMs = Math.min(this.#askedTimeout(input.timeout_ms) ?? timeoutMs, timeoutMs);
    if (input.restart) this.#forget();
    if (input.command === undefined || input.command.trim() === "") {
      if (input.restart) return plainResult("bash session restarted");
      throw new ToolError("bash: command is required");
    }
    if (input.command.includes("\0")) throw new ToolError("bash: command holds a NUL character");
    return this.#execute(input.command, ownTimeoutMs, signal);
  }

  #askedTimeout(asked: number | undefined): number | undefined {
    const { maxTimeoutMs } = this.#options.limits;
    if (asked === undefined || (asked >= 1 && asked <= maxTimeoutMs)) return asked;
    throw new ToolError(`bash: timeout_ms must be a whole number from 1 to ${maxTimeoutMs}`);
  }

  #forget(): void {
    this.#next?.dismiss();
    this.#next = undefined;
    rmSync(this.#options.stateFolder, { recursive: true, force: true });
    mkdirSync(this.#options.stateFolder, { recursive: true, mode: 0o700 });
  }

  async #execute(command: string, timeoutMs: number, signal: AbortSignal): Promise<ToolResult> {
    const shell = this.#takeShell();
    const commandFile = this.#writeCommand(shell, command);
    const collector = new OutputCollector(this.#options.limits);
    const drained = drain(shell.child, collector);
    shell.begin(commandFile);
    const end = await settle(shell, timeoutMs, signal);
    await drained.afterExit();
    rmSync(commandFile, { force: true });
    this.#keepState();
    if (!end.isClean) this.#options.onUnclean("processes of a command could not be killed");
    const own = new Set(shell.pid === undefined ? [] : findCallProcesses(shell.pid, shell.mark));
    const output = collector.finish();
    const file = output.isTruncated ? this.#outputs.keep(output.raw) : undefined;
    const result = describeRun({ output, file, end, timeoutMs, own });
    this.warm();
    return result;
  }

  /** A file, because one argument may not exceed 128 KiB. */
  #writeCommand(shell: WaitingShell, command: string): string {
    const { stateFolder } = this.#options;
    const path = `${stateFolder}/command-${shell.mark}`;
    try {
      mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
      rmSync(`${stateFolder}/complete`, { force: true });
      writeFileSync(path, command, { mode: 0o600 });
      return path;
    } catch {
      shell.dismiss();
      throw new ToolError("bash: the hand has no room left for the command");
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
