import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../../common/version.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { Terminal } from "../terminal/terminal.ts";
import { visibleLines } from "../terminal/visible-text.ts";
import { COMMON_OPTIONS, type Command, type Invocation } from "./command.ts";
import { helpOf, overview } from "./help.ts";

const COMMANDS: Record<string, () => Promise<Command>> = {
  up: async () => (await import("./up.ts")).up,
  down: async () => (await import("./down.ts")).down,
  run: async () => (await import("./run.ts")).run,
  tail: async () => (await import("./tail.ts")).tail,
  sessions: async () => (await import("./sessions.ts")).sessions,
  mcp: async () => (await import("./mcp.ts")).mcp,
  vault: async () => (await import("./vault.ts")).vault,
  policy: async () => (await import("./policy.ts")).policy,
  audit: async () => (await import("./audit.ts")).audit,
  certs: async () => (await import("./certs.ts")).certs,
  doctor: async () => (await import("./doctor.ts")).doctor,
};

/** runCommand runs one command line and returns the exit code. Only what a command needs is loaded. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "--version" || name === "version") return print(`ganglion ${VERSION}`);
  if (name === undefined || name === "--help" || name === "-h") return print(await overview(await all()));
  try {
    if (name === "help") return print(rest[0] ? helpOf(await find(rest[0])) : await overview(await all()));
    return await invoke(await find(name), rest);
  } catch (error) {
    return complain(error, argv.includes("--json"));
  }
}

async function invoke(command: Command, argv: string[]): Promise<number> {
  const { values, positionals } = parse(command, argv);
  if (values.help) return print(helpOf(command));
  const [fewest, most] = command.arity;
  if (positionals.length < fewest || positionals.length > most) {
    throw new CliError(`usage: ganglion ${command.name} ${command.usage}`, EXIT.usage);
  }
  return command.run({
    options: values,
    positionals,
    stateDir: resolve(String(values["state-dir"])),
    terminal: new Terminal({ json: values.json === true }),
  });
}

function parse(command: Command, argv: string[]) {
  try {
    const options = { ...command.options, ...COMMON_OPTIONS };
    const { values, positionals } = parseArgs({
      args: argv,
      options,
      allowPositionals: true,
      allowNegative: true,
    });
    return { values: values as Invocation["options"], positionals };
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage, `ganglion help ${command.name}`);
  }
}

async function find(name: string): Promise<Command> {
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) throw new CliError(`there is no command ${name}`, EXIT.usage, "ganglion help");
  return load();
}

function all(): Promise<Command[]> {
  return Promise.all(Object.values(COMMANDS).map((load) => load()));
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return EXIT.ok;
}

function complain(error: unknown, json: boolean): number {
  const known = error instanceof CliError ? error : undefined;
  const message = error instanceof Error ? error.message : String(error);
  const exitCode = known?.exitCode ?? exitCodeOf(error);
  if (json) {
    process.stdout.write(
      `${JSON.stringify({ error: message, ...(known?.hint ? { hint: known.hint } : {}) })}\n`,
    );
  } else {
    process.stderr.write(`ganglion: ${visibleLines(message)}\n`);
    if (known?.hint) process.stderr.write(`  try: ${visibleLines(known.hint)}\n`);
  }
  return exitCode;
}

const BY_CODE: Record<string, number> = {
  INVALID_ARGUMENT: EXIT.data,
  NOT_FOUND: EXIT.noInput,
  PERMISSION_DENIED: EXIT.noPermission,
  UNAUTHENTICATED: EXIT.noPermission,
  UNAVAILABLE: EXIT.unavailable,
  DEADLINE_EXCEEDED: EXIT.unavailable,
  RESOURCE_EXHAUSTED: EXIT.temporary,
  ABORTED: EXIT.temporary,
};

function exitCodeOf(error: unknown): number {
  const code = (error as { code?: unknown } | null)?.code;
  return (typeof code === "string" && BY_CODE[code]) || EXIT.failed;
}
