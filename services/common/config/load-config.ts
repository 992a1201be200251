import { VERSION } from "../version.ts";
import type { ConfigOf, Field, Fields } from "./fields.ts";
import { forbiddenVariables } from "./forbidden-variables.ts";

/** sysexits: the configuration is wrong. */
export const EXIT_CONFIG = 78;

/** Where settings come from. */
export interface ConfigSource {
  env: NodeJS.ProcessEnv;
  /** Arguments after the script; `--listen x` overrides GANGLION_LISTEN. */
  argv: readonly string[];
  execArgv?: readonly string[];
}

/** What reading the settings gave: values, or everything that is wrong with them. */
export type ConfigResult<F extends Fields> =
  | { ok: true; config: ConfigOf<F>; printed: Record<string, unknown> }
  | { ok: false; problems: string[] };

/** Reads the settings without side effects and lists all problems at once. */
export function readConfig<F extends Fields>(fields: F, source: ConfigSource): ConfigResult<F> {
  const problems = forbiddenVariables(source.env).map((name) => `${name} must not be set for a service`);
  for (const argument of source.execArgv ?? []) {
    if (argument.startsWith("--inspect")) problems.push("a service must not run with --inspect");
  }
  for (const name of Object.keys(source.env)) {
    if (name.startsWith("GANGLION_") && !Object.hasOwn(fields, name))
      problems.push(`${name} is not a setting`);
  }
  const flags = readFlags(fields, source.argv, problems);

  const config: Record<string, unknown> = {};
  const printed: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const raw = flags.get(name) ?? source.env[name];
    try {
      config[name] = readOne(field, raw);
      printed[name] = field.secret && raw !== undefined ? "[set]" : config[name];
    } catch (error) {
      problems.push(`${name} ${(error as Error).message}`);
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, config: config as ConfigOf<F>, printed };
}

/**
 * Reads the settings of a service or ends the process: exit 78 with every problem on standard
 * error. Answers --print-config (secrets redacted), --help and --version.
 */
export function loadConfig<F extends Fields>(service: string, fields: F): ConfigOf<F> {
  const argv = process.argv.slice(2);
  if (argv.includes("--version")) finish(`${VERSION}\n`);
  if (argv.includes("--help")) finish(helpText(service, fields));
  const result = readConfig(fields, {
    env: process.env,
    argv: argv.filter((argument) => argument !== "--print-config"),
    execArgv: process.execArgv,
  });
  if (!result.ok) {
    process.stderr.write(
      `${service}: the configuration is wrong\n${result.problems.map((p) => `  ${p}\n`).join("")}`,
    );
    process.exit(EXIT_CONFIG);
  }
  if (argv.includes("--print-config")) finish(`${JSON.stringify(result.printed, null, 2)}\n`);
  return result.config;
}

function readOne(field: Field<unknown>, raw: string | undefined): unknown {
  if (raw !== undefined) return field.parse(raw);
  if (!field.default) throw new Error("is required");
  return field.default();
}

function readFlags(fields: Fields, argv: readonly string[], problems: string[]): Map<string, string> {
  const flags = new Map<string, string>();
  for (let i = 0; i < argv.length; i++) {
    const [flag = "", inline] = splitOnce(argv[i] ?? "");
    const name = variableOf(flag);
    const field = name !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (name === undefined || !field) {
      problems.push(`${flag} is not a flag`);
    } else if (field.secret) {
      problems.push(`${flag} is secret: arguments can be read by others`);
    } else {
      const value = inline ?? argv[++i];
      if (value === undefined) problems.push(`${flag} needs a value`);
      else flags.set(name, value);
    }
  }
  return flags;
}

function splitOnce(argument: string): [string, string | undefined] {
  const at = argument.indexOf("=");
  return at < 0 ? [argument, undefined] : [argument.slice(0, at), argument.slice(at + 1)];
}

function variableOf(flag: string): string | undefined {
  return flag.startsWith("--") ? `GANGLION_${flag.slice(2).replaceAll("-", "_").toUpperCase()}` : undefined;
}

function flagOf(name: string): string {
  return `--${name
    .replace(/^GANGLION_/, "")
    .replaceAll("_", "-")
    .toLowerCase()}`;
}

function helpText(service: string, fields: Fields): string {
  const lines = Object.entries(fields).map(([name, field]) => {
    const need = field.default ? "" : " (required)";
    const by = name.startsWith("GANGLION_") && !field.secret ? `, ${flagOf(name)}` : "";
    return `  ${name}${by}\n      ${field.help}${need}\n`;
  });
  return `${service} ${VERSION}\n\nSettings (environment, flag):\n${lines.join("")}`;
}

function finish(output: string): never {
  process.stdout.write(output);
  process.exit(0);
}
