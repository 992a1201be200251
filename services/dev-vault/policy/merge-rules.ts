import type { PathRule } from "./parse-policy.ts";

type Parameters = Readonly<Record<string, readonly unknown[]>>;

/** mergeRules makes one rule of what several policies say about the same path; deny wins over everything. */
export function mergeRules(rules: readonly PathRule[]): PathRule {
  const [first, ...others] = rules;
  if (!first) throw new Error("no rule to merge");
  return others.reduce(mergeTwo, first);
}

function mergeTwo(a: PathRule, b: PathRule): PathRule {
  const capabilities = new Set([...a.capabilities, ...b.capabilities]);
  return {
    path: a.path,
    capabilities: capabilities.has("deny") ? ["deny"] : [...capabilities],
    minWrappingTtlMs: smallestGiven(a.minWrappingTtlMs, b.minWrappingTtlMs),
    maxWrappingTtlMs: Math.max(a.maxWrappingTtlMs, b.maxWrappingTtlMs),
    // As in Vault, a policy that names no parameters does not lift the limits of one that does.
    allowedParameters: mergeParameters(a.allowedParameters, b.allowedParameters),
    deniedParameters: mergeParameters(a.deniedParameters, b.deniedParameters),
    requiredParameters: [...new Set([...a.requiredParameters, ...b.requiredParameters])],
  };
}

/** 0 stands for "not given". */
function smallestGiven(a: number, b: number): number {
  return a > 0 && b > 0 ? Math.min(a, b) : Math.max(a, b);
}

function mergeParameters(a: Parameters | undefined, b: Parameters | undefined): Parameters | undefined {
  if (!a || !b) return a ?? b;
  const merged: Record<string, readonly unknown[]> = { ...a };
  for (const [name, values] of Object.entries(b)) {
    const known = Object.hasOwn(a, name) ? a[name] : undefined;
    merged[name] = !known ? values : known.length === 0 || values.length === 0 ? [] : [...known, ...values];
  }
  return merged;
}
