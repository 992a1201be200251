import { checkInput } from "./check-input.ts";
import type { Roots } from "./confine-path.ts";
import { editTool, readTool, writeTool } from "./file-tools.ts";
import { HeadTailText } from "./head-tail-text.ts";
import type { HandLimits, ToolResult } from "./protocol.ts";
import { plainResult } from "./results.ts";
import { Shell } from "./shell.ts";
import { ToolError } from "./tool-error.ts";

/** Where a toolset works. */
export type ToolsetOptions = {
  roots: Roots;
  stateFolder: string;
  outputFolder: string;
  limits: HandLimits;
  /** Environment variables of commands, beside the base ones. */
  environment: Readonly<Record<string, string>>;
  onUnclean: (detail: string) => void;
};

/** One call. */
export type ToolsetCall = {
  name: string;
  input: unknown;
  timeoutMs: number;
  signal: AbortSignal;
  onStart: () => void;
};

/** Toolset runs the built-in tools of a hand. */
export class Toolset {
  readonly #options: ToolsetOptions;
  readonly #shell: Shell;

  constructor(options: ToolsetOptions) {
    this.#options = options;
    this.#shell = new Shell({ ...options, workspace: options.roots[0] });
    this.#shell.warm();
  }

  /** run executes one call; whatever goes wrong inside is a result, never an exception. */
  async run(call: ToolsetCall): Promise<ToolResult> {
    const { name, signal } = call;
    try {
      const input = checkInput(name, call.input);
      if (name === "bash") return await this.#shell.run({ ...call, input });
      call.onStart();
      return await this.#runWithin(call, input);
    } catch (error) {
      const text = error instanceof ToolError ? error.message : `${name}: the tool failed`;
      return { ...plainResult(text), isError: true, isCancelled: signal.aborted };
    }
  }

  async #runWithin(
    { name, timeoutMs, signal }: ToolsetCall,
    input: Record<string, unknown>,
  ): Promise<ToolResult> {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      return this.#limit(await this.#runFileTool(name, input, AbortSignal.any([signal, timeout])));
    } catch (error) {
      if (!timeout.aborted || signal.aborted) throw error;
      const text = `${name}: timed out after ${timeoutMs} ms`;
      return { ...plainResult(text), isError: true, isTimedOut: true };
    }
  }

  async #runFileTool(name: string, input: Record<string, unknown>, signal: AbortSignal): Promise<string> {
    const files = { roots: this.#options.roots, fileBytes: this.#options.limits.fileBytes };
    // checkInput has proved the shapes.
    if (name === "read") return readTool(input as Parameters<typeof readTool>[0], files);
    if (name === "write") return writeTool(input as Parameters<typeof writeTool>[0], files);
    if (name === "edit") return editTool(input as Parameters<typeof editTool>[0], files);
    // Loaded when it is needed: threads cost every hand's birth some milliseconds.
    const { globTool, grepTool } = await import("./search-tools.ts");
    if (name === "glob") return globTool(input as Parameters<typeof globTool>[0], files.roots, signal);
    return grepTool(input as Parameters<typeof grepTool>[0], files.roots, signal);
  }

  #limit(text: string): ToolResult {
    const limited = new HeadTailText(this.#options.limits.textChars);
    limited.push(text);
    return {
      ...plainResult(limited.toString()),
      outputBytes: Buffer.byteLength(text),
      isTruncated: limited.isTruncated,
    };
  }
}
