import type { Operation, VaultRequest } from "../core/request.ts";
import { mergeRules } from "./merge-rules.ts";
import { isParameterSetAllowed } from "./parameters.ts";
import type { PathRule } from "./parse-policy.ts";
import { pathMatches, rankPattern } from "./path-pattern.ts";

/** Acl answers what a set of policies grants, by Vault's rules. */
export class Acl {
  readonly #isRoot: boolean;
  /** Rules by path: the same path in several policies is merged. */
  readonly #rules = new Map<string, PathRule[]>();

  constructor(rules: readonly PathRule[], isRoot: boolean) {
    this.#isRoot = isRoot;
    for (const rule of rules) this.#rules.set(rule.path, [...(this.#rules.get(rule.path) ?? []), rule]);
  }

  /** allows tells whether an operation, with these parameters and this wrapping, may be carried out. */
  allows(request: VaultRequest, needsSudo: boolean): boolean {
    if (this.#isRoot) return true;
    const rules = this.#decisive(request.path, request.operation);
    if (!rules) return false;
    const rule = mergeRules(rules);
    if (!rule.capabilities.includes(request.operation)) return false;
    if (needsSudo && !rule.capabilities.includes("sudo")) return false;
    return isWrappingAllowed(rule, request) && isParameterSetAllowed(rule, request);
  }

  /** capabilities lists what is granted on a path, as sys/capabilities-self shows it. */
  capabilities(path: string): string[] {
    if (this.#isRoot) return ["root"];
    const rules = this.#decisive(path, "read");
    const granted = rules ? [...mergeRules(rules).capabilities].sort() : [];
    return granted.length > 0 ? granted : ["deny"];
  }

  /** hasSudo tells whether the path carries the sudo capability. */
  hasSudo(path: string): boolean {
    if (this.#isRoot) return true;
    const rules = this.#decisive(path, "update");
    return rules !== undefined && mergeRules(rules).capabilities.includes("sudo");
  }

  #decisive(path: string, operation: Operation): PathRule[] | undefined {
    const exact = this.#rules.get(path);
    if (exact && !isPattern(path)) return exact;
    if (operation === "list" || path.endsWith("/")) {
      const trimmed = this.#rules.get(path.replace(/\/$/, ""));
      if (trimmed) return trimmed;
    }
    let best: string | undefined;
    for (const pattern of this.#rules.keys()) {
      if (!isPattern(pattern) || !pathMatches(pattern, path)) continue;
      if (best === undefined || rankPattern(pattern, best) > 0) best = pattern;
    }
    return best === undefined ? undefined : this.#rules.get(best);
  }
}

function isPattern(path: string): boolean {
  return path.endsWith("*") || path.split("/").includes("+");
}

function isWrappingAllowed(rule: PathRule, request: VaultRequest): boolean {
  if (rule.minWrappingTtlMs > 0 && request.wrapTtlMs < rule.minWrappingTtlMs) return false;
  if (rule.maxWrappingTtlMs === 0) return true;
  return request.wrapTtlMs > 0 && request.wrapTtlMs <= rule.maxWrappingTtlMs;
}
