import { closeSync, readFileSync } from "node:fs";

/**
 * readDescriptor reads the JSON object on the descriptor that GANGLION_BOOTSTRAP_FD names, to its end, and closes it.
 * Every field must be a non-empty string: a secret that is missing or empty never means "no check".
 */
export function readDescriptor<Name extends string>(
  required: readonly Name[],
  optional: readonly Name[] = [],
) {
  const fd = Number(process.env.GANGLION_BOOTSTRAP_FD);
  if (!Number.isInteger(fd) || fd < 3)
    throw new Error("GANGLION_BOOTSTRAP_FD must name a descriptor from 3 up");
  const document: unknown = JSON.parse(readFileSync(fd, "utf8"));
  closeSync(fd);
  const fields = document as Record<string, unknown>;
  const values: Partial<Record<Name, string>> = {};
  for (const name of [...required, ...optional]) {
    const value = fields?.[name];
    if (value === undefined && optional.includes(name)) continue;
    // The message names the field and never quotes what was in it.
    if (typeof value !== "string" || value.length === 0)
      throw new Error(`descriptor: ${name} must be a non-empty string`);
    values[name] = value;
  }
  return values;
}
