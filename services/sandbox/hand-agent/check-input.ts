import { ToolError } from "./tool-error.ts";

type Kind = "string" | "boolean" | "integer" | "range";
type Shape = Record<string, { kind: Kind; isRequired?: boolean }>;

const text = { kind: "string" } as const;
const needed = { kind: "string", isRequired: true } as const;

/** Input fields of the built-in tools. */
export const TOOL_INPUTS: Readonly<Record<string, Shape>> = {
  bash: { command: text, restart: { kind: "boolean" }, timeout_ms: { kind: "integer" } },
  read: { file_path: needed, view_range: { kind: "range" } },
  write: { file_path: needed, content: needed },
  edit: { file_path: needed, old_string: needed, new_string: needed, replace_all: { kind: "boolean" } },
  glob: { pattern: needed, path: text },
  grep: { pattern: needed, path: text },
};

const CHECKS: Record<Kind, (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  integer: (value) => Number.isInteger(value),
  range: (value) => Array.isArray(value) && value.every((item) => Number.isInteger(item)),
};

/**
 * checkInput returns the known fields of a tool call's input, each of the right kind. Null counts as absent; fields
 * that are not known are refused by name, so that a misspelt one is not silently ignored.
 */
export function checkInput(name: string, input: unknown): Record<string, unknown> {
  const shape = Object.hasOwn(TOOL_INPUTS, name) ? TOOL_INPUTS[name] : undefined;
  if (!shape) throw new ToolError(`unknown tool ${JSON.stringify(name)}`);
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw new ToolError(`${name}: the input must be an object`);
  }
  const checked: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(input)) {
    if (!Object.hasOwn(shape, field))
      throw new ToolError(`${name}: unknown field ${JSON.stringify(field.slice(0, 64))}`);
    if (value === null || value === undefined) continue;
    if (!CHECKS[shape[field]!.kind](value))
      throw new ToolError(`${name}: ${field} must be a ${shape[field]!.kind}`);
    checked[field] = value;
  }
  for (const [field, rule] of Object.entries(shape)) {
    if (rule.isRequired && checked[field] === undefined) throw new ToolError(`${name}: ${field} is required`);
  }
  return checked;
}
