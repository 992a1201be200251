import { readFileSync } from "node:fs";
import { replaceFile } from "./mesh-files.ts";

/** Names and values of client.env. */
export type ClientEnv = Record<string, string>;

/** readClientEnv reads client.env; undefined where there is none. Only NAME=value lines count. */
export function readClientEnv(path: string): ClientEnv | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const pairs = text
    .split("\n")
    .map((line) => /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line))
    .filter((match) => match !== null);
  return Object.fromEntries(pairs.map(([, name, value]) => [name, unquote(value as string)]));
}

/** writeClientEnv replaces client.env, mode 0600. */
export function writeClientEnv(path: string, env: ClientEnv): void {
  replaceFile(
    path,
    Object.entries(env)
      .map(([name, value]) => `${name}=${quote(value)}\n`)
      .join(""),
  );
}

/** A shell reads the file too: a path with a space in it must stay one word. Nothing else is ever quoted. */
function quote(value: string): string {
  return /^[A-Za-z0-9_./:@%+,=-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

function unquote(value: string): string {
  const quoted = /^'(.*)'$/.exec(value);
  return quoted ? (quoted[1] as string).replaceAll("'\\''", "'") : value;
}
