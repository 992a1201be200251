import { isStorable, SECRET_MEANS } from "../../common/seal/secret-form.ts";
import { invalid } from "./refuse.ts";

/** requiredSecret wants a secret that mcp-proxy will take. No error repeats any of it. */
export function requiredSecret(value: unknown, name: string): string {
  if (value === undefined || value === null || value === "") throw invalid(name, "is required");
  if (typeof value !== "string") throw invalid(name, "must be a string");
  if (!isStorable(value)) throw invalid(name, SECRET_MEANS);
  return value;
}

/** optionalSecret is requiredSecret for a field that may be left out; null counts as left out. */
export function optionalSecret(value: unknown, name: string): string | undefined {
  return value === undefined || value === null ? undefined : requiredSecret(value, name);
}
