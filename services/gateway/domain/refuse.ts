import { GanglionError } from "../../common/errors/ganglion-error.ts";

/** invalid says which field of a request is wrong. */
export function invalid(field: string, description: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "INVALID_FIELD",
    message: `${field}: ${description}`,
    violations: [{ field, description }],
  });
}

/** notYet refuses by name what the API knows and this version does not do: nothing is half done. */
export function notYet(feature: string): GanglionError {
  return new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "NOT_SUPPORTED",
    message: `${feature}: not supported by this version`,
    violations: [{ field: feature, description: "not supported by this version" }],
  });
}

/** asObject wants a JSON object. */
export function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(name, "must be an object");
  return value as Record<string, unknown>;
}

/** refuseUnknown refuses keys that nobody here knows, by name. */
export function refuseUnknown(value: Record<string, unknown>, known: readonly string[], prefix = ""): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw invalid(`${prefix}${unknown}`, "is not known");
}

/** optionalText wants text or nothing; null counts as nothing. */
export function optionalText(value: unknown, name: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw invalid(name, "must be a string");
  return value;
}

/** requiredText wants text that is not empty. */
export function requiredText(value: unknown, name: string): string {
  const text = optionalText(value, name);
  if (!text) throw invalid(name, "is required");
  return text;
}
