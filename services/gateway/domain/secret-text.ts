import { invalid } from "./refuse.ts";

const MIN_CHARS = 4;
const MAX_CHARS = 65_536;

/** requiredSecret wants a secret that mcp-proxy will take. No error repeats any of it. */
export function requiredSecret(value: unknown, name: string): string {
  if (value === undefined || value === null || value === "") throw invalid(name, "is required");
  if (typeof value !== "string") throw invalid(name, "must be a string");
  const isFit =
    value.length >= MIN_CHARS &&
    value.length <= MAX_CHARS &&
    /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value);
  if (!isFit) {
    throw invalid(
      name,
      `must be ${MIN_CHARS} to ${MAX_CHARS} characters of printable ASCII without spaces around them`,
    );
  }
  return value;
}

/** optionalSecret is requiredSecret for a field that may be left out; null counts as left out. */
export function optionalSecret(value: unknown, name: string): string | undefined {
  return value === undefined || value === null ? undefined : requiredSecret(value, name);
}
