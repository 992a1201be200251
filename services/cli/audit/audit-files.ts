import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { NamedText } from "./check-checkpoints.ts";
import { readLines } from "./read-lines.ts";

/** Files of an audit log, as they were named on the command line or found in a folder. */
export interface AuditFiles {
  readonly logs: readonly string[];
  readonly checkpoints: readonly string[];
  readonly keys: string | undefined;
}

/** Finds the files of an audit folder: one set for each mcp-proxy that wrote there. */
export function findAuditFiles(folder: string): AuditFiles {
  let names: string[];
  try {
    names = readdirSync(folder).sort();
  } catch {
    throw new CliError(`${folder} cannot be read`, EXIT.noInput);
  }
  const all = (pattern: RegExp) =>
    names.filter((name) => pattern.test(name)).map((name) => join(folder, name));
  return {
    logs: all(/^records(-.+)?\.jsonl$/),
    checkpoints: all(/^checkpoints(-.+)?\.notes$/),
    keys: all(/^keys\.json$/)[0],
  };
}

/** Reads a file whole; for those that are small. */
export function readNamed(path: string): NamedText {
  try {
    return { name: basename(path), text: readFileSync(path, "utf8") };
  } catch {
    throw new CliError(`${path} cannot be read`, EXIT.noInput);
  }
}

/** Yields the lines of a file that may be larger than memory. */
export function* readLogLines(path: string): Generator<string> {
  try {
    yield* readLines(path);
  } catch {
    throw new CliError(`${path} cannot be read`, EXIT.noInput);
  }
}
