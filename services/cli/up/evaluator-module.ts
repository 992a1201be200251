import { chmodSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { replaceFile } from "./mesh-files.ts";

const MAX_BYTES = 1 << 20;

/** readEvaluator reads the operator's evaluator, one file; the harnesses check what it exports. */
export function readEvaluator(path: string): string {
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error("it is larger than 1 MiB");
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new CliError(`--evaluator ${path} cannot be read: ${why}`, EXIT.config);
  }
}

/** evaluatorSetting puts the module where the harnesses' user can read it; without one, none is left there. */
export function evaluatorSetting(state: string, source: string | undefined): Record<string, string> {
  const path = join(state, "evaluator.mjs");
  if (source === undefined) {
    rmSync(path, { force: true });
    return {};
  }
  replaceFile(path, source);
  // What it decides by is no secret; who may write it is the owner of the state folder.
  chmodSync(path, 0o644);
  return { GANGLION_HARNESS_EVALUATOR: path };
}
