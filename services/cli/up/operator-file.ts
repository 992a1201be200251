import { chmodSync, readFileSync, rmSync, statSync } from "node:fs";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { replaceFile } from "./mesh-files.ts";

const MAX_BYTES = 1 << 20;

/**
 * readOperatorFile reads a file that an option of `up` names; `check` throws when it cannot be what it should be. The
 * service that gets it checks what it says.
 */
export function readOperatorFile(option: string, path: string, check?: (text: string) => unknown): string {
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error("it is larger than 1 MiB");
    const text = readFileSync(path, "utf8");
    check?.(text);
    return text;
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new CliError(`--${option} ${path} cannot be used: ${why}`, EXIT.config);
  }
}

/**
 * operatorFileSetting puts such a file where the service's user can read it, and names it in a setting; without a text
 * none is left there.
 */
export function operatorFileSetting(
  setting: string,
  path: string,
  text: string | undefined,
): Record<string, string> {
  if (text === undefined) {
    rmSync(path, { force: true });
    return {};
  }
  replaceFile(path, text);
  // Prices and rules are no secret; who may write them is the owner of the state folder.
  chmodSync(path, 0o644);
  return { [setting]: path };
}
