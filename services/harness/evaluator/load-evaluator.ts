import { pathToFileURL } from "node:url";
import type { PermissionEvaluator } from "../ports/permission-evaluator.ts";

const NAME = /^[A-Za-z0-9._-]{1,48}\/[A-Za-z0-9._-]{1,15}$/;

/**
 * Loads the operator's own evaluator: the default export of a module. It runs in the harness's process, so it is as
 * trusted as the harness is. Throws an Error whose message says what is wrong.
 */
export async function loadEvaluator(path: string): Promise<PermissionEvaluator> {
  let loaded: { default?: unknown };
  try {
    loaded = (await import(pathToFileURL(path).href)) as { default?: unknown };
  } catch (error) {
    throw new Error(`cannot be loaded (${(error as Error | undefined)?.name ?? "Error"})`, { cause: error });
  }
  const evaluator = loaded.default as Partial<PermissionEvaluator> | null | undefined;
  if (typeof evaluator !== "object" || evaluator === null)
    throw new Error("has no default export that is an object");
  const { name } = evaluator;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new Error('must export a name and version such as "house/1", at most 48 and 15 characters');
  }
  if (typeof evaluator.evaluate !== "function") throw new Error("must export a function evaluate");
  if (name.startsWith("rules/")) throw new Error('must not call itself "rules": that is the built-in one');
  // The name is read once: what is recorded is what was checked.
  return { name, evaluate: evaluator.evaluate.bind(evaluator) };
}
