import type { VaultRequest } from "../core/request.ts";
import type { PathRule } from "./parse-policy.ts";

/** isParameterSetAllowed applies a rule's required, denied and allowed parameters to a write. */
export function isParameterSetAllowed(rule: PathRule, request: VaultRequest): boolean {
  if (request.operation !== "create" && request.operation !== "update" && request.operation !== "patch") {
    return true;
  }
  const given = new Map(Object.entries(request.data).map(([name, value]) => [name.toLowerCase(), value]));
  if (!rule.requiredParameters.every((name) => given.has(name.toLowerCase()))) return false;
  const denied = rule.deniedParameters ?? {};
  if (given.size > 0 && Object.hasOwn(denied, "*")) return false;
  for (const [name, value] of given) {
    if (Object.hasOwn(denied, name) && isListed(denied[name], value)) return false;
  }
  const allowed = rule.allowedParameters;
  if (!allowed) return true;
  for (const [name, value] of given) {
    if (!Object.hasOwn(allowed, name)) {
      if (!Object.hasOwn(allowed, "*")) return false;
    } else if (!isListed(allowed[name], value)) return false;
  }
  return true;
}

/** An empty list stands for any value; a string in it may have a `*` at its start or end. */
function isListed(list: readonly unknown[] | undefined, value: unknown): boolean {
  if (!list || list.length === 0) return true;
  return list.some((item) => {
    if (typeof item === "string" && typeof value === "string") return globMatches(item, value);
    return JSON.stringify(item) === JSON.stringify(value);
  });
}

/** globMatches compares with a pattern that may begin or end with `*`. */
export function globMatches(pattern: string, value: string): boolean {
  const open = pattern.startsWith("*");
  const close = pattern.endsWith("*") && pattern.length > 1;
  const core = pattern.slice(open ? 1 : 0, close ? -1 : undefined);
  if (open && close) return value.includes(core);
  if (open) return value.endsWith(core);
  return close ? value.startsWith(core) : value === pattern;
}
