import type { ParseArgsOptionsConfig } from "node:util";
import type { Terminal } from "../terminal/terminal.ts";

/** What a command is run with. */
export interface Invocation {
  readonly options: Record<string, string | boolean | string[] | undefined>;
  readonly positionals: readonly string[];
  /** Absolute path of the state folder. */
  readonly stateDir: string;
  readonly terminal: Terminal;
}

/** One command of the CLI. */
export interface Command {
  readonly name: string;
  /** Arguments as shown in the help. */
  readonly usage: string;
  readonly summary: string;
  /** Further lines for `ganglion help <command>`. */
  readonly details?: readonly string[];
  readonly options: ParseArgsOptionsConfig;
  /** Fewest and most positional arguments. */
  readonly arity: readonly [number, number];
  /** Returns the exit code. */
  readonly run: (invocation: Invocation) => Promise<number>;
}

/** Options that every command has. */
export const COMMON_OPTIONS = {
  "state-dir": { type: "string", default: ".ganglion" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const satisfies ParseArgsOptionsConfig;
