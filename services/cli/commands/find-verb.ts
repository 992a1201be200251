import { CliError, EXIT } from "../terminal/exit-codes.ts";

/** findVerb gives what a command does for a verb: only what its table names itself, never what every object has. */
export function findVerb<T>(command: string, verbs: Readonly<Record<string, T>>, verb: string): T {
  const found = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (found === undefined)
    throw new CliError(`there is no ${command} ${verb}`, EXIT.usage, `ganglion help ${command}`);
  return found;
}
