/** Exit codes of the CLI, as in sysexits.h. */
export const EXIT = {
  ok: 0,
  /** Something is ill, or a session did not end well. */
  failed: 1,
  /** The command line is wrong. */
  usage: 64,
  /** What was given on standard input is wrong. */
  data: 65,
  /** A thing that was named is not there. */
  noInput: 66,
  /** A part of the mesh cannot be reached. */
  unavailable: 69,
  /** A bug. */
  software: 70,
  /** Something of the machine is missing. */
  osError: 71,
  /** A file cannot be written. */
  cannotCreate: 73,
  /** Try again. */
  temporary: 75,
  /** Not allowed. */
  noPermission: 77,
  /** The set-up is wrong. */
  config: 78,
} as const;

/** An error that ends the CLI with one line and an exit code of its own. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;
  /** What to do about it. */
  readonly hint: string | undefined;

  constructor(message: string, exitCode: number, hint?: string) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}
