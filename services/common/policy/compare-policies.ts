import { sortedJson } from "../json/sorted-json.ts";
import type { Policy, PolicyBound } from "./policy.ts";
import { boundsOf } from "./read-policy.ts";

/** One rule that only one of two policies has. */
export interface PolicyChange {
  /** "+": allowed from now on. "-": no longer allowed by this rule. */
  readonly sign: "+" | "-";
  /** Bound and section, for example "default.mcp". */
  readonly where: string;
  /** The rule as JSON. */
  readonly rule: string;
}

const SECTIONS = ["models", "mcp", "egress", "git", "oauth", "mint"] as const;

/**
 * Lists what a new policy allows that the old one did not, and the other way round. Order and layout do not count. A
 * workspace that gets or loses a bound of its own is compared with the default that applied, or now applies, to it.
 */
export function comparePolicies(before: Policy, after: Policy): PolicyChange[] {
  const paths = new Set([...boundsOf(before), ...boundsOf(after)].map(([path]) => path));
  return [...paths].flatMap((path) => {
    const [old, now] = [boundAt(before, path), boundAt(after, path)];
    return SECTIONS.flatMap((section) => compareSection(`${path}.${section}`, old[section], now[section]));
  });
}

function compareSection(where: string, before: readonly object[] = [], after: readonly object[] = []) {
  const [old, now] = [new Set(before.map(ruleText)), new Set(after.map(ruleText))];
  const added = [...now]
    .filter((rule) => !old.has(rule))
    .map((rule) => ({ sign: "+" as const, where, rule }));
  const gone = [...old].filter((rule) => !now.has(rule)).map((rule) => ({ sign: "-" as const, where, rule }));
  return [...gone, ...added];
}

function boundAt(policy: Policy, path: string): PolicyBound {
  return new Map(boundsOf(policy)).get(path) ?? policy.default;
}

/** Keys and lists in a fixed order, since neither means anything. */
function ruleText(rule: object): string {
  const entries = Object.entries(rule).map(([key, value]) => [
    key,
    Array.isArray(value) ? [...value].sort() : value,
  ]);
  return sortedJson(Object.fromEntries(entries));
}
