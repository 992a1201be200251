import type { MintRule, Policy, PolicyBound, ReachRule } from "./policy.ts";

/** A destination as a rule sees it. */
export interface PolicyDestination {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  /** Listed in GANGLION_PROXY_ALLOW_HTTP_HOSTS. */
  readonly isListedInside: boolean;
}

/** A request as the rules on new credentials see it. */
export interface PolicyRoute {
  readonly destination: PolicyDestination;
  readonly method: string;
  /** Path below the host, without a leading slash and without query. */
  readonly path: string;
}

/** What a policy says of a route's answer (case A066). */
export interface PolicyMinting {
  /** The rule by which a hand may have the new credential as a sealed token; absent = none. */
  readonly rule?: string;
  /** Fields that rules for this route seal. */
  readonly fields: readonly string[];
  /** Further fields that are sealed at other routes of the same host: here they are withheld. */
  readonly elsewhere: readonly string[];
}

/** What somebody wants to do. */
export type PolicyQuestion =
  | { readonly door: "models"; readonly model: string }
  | { readonly door: "mcp" | "egress" | "oauth"; readonly destination: PolicyDestination }
  | {
      readonly door: "git";
      readonly destination: PolicyDestination;
      /** Path below the host, without a leading slash and without ".git". */
      readonly repository: string;
      readonly operation: "fetch" | "push";
      /** Refs that a push changes, all of them; empty for a fetch, and while a push only asks what is there. */
      readonly refs: readonly string[];
    };

/**
 * Names the rule that allows a question, or nothing: then it is denied. A push of several refs may need several rules;
 * the first one is named.
 */
export function findRule(policy: Policy, workspaceId: string, question: PolicyQuestion): string | undefined {
  const [path, bound] = boundFor(policy, workspaceId);
  const { door } = question;
  const named = (i: number) => (i < 0 ? undefined : `${path}.${door}[${i}]`);
  if (question.door === "models") {
    return named(
      (bound.models ?? []).findIndex(({ names }) => names.some((n) => hasName(n, question.model))),
    );
  }
  if (question.door !== "git") {
    return named((bound[question.door] ?? []).findIndex((rule) => reaches(rule, question.destination)));
  }
  const { destination, repository, operation, refs } = question;
  const rules = (bound.git ?? []).map(
    (rule) =>
      reaches(rule, destination) &&
      rule.operations.includes(operation) &&
      rule.repositories.some((pattern) => hasPath(pattern, repository)) &&
      rule,
  );
  const isCovered = refs.every((ref) =>
    rules.some((rule) => rule && (rule.refs ?? []).some((pattern) => hasPath(pattern, ref))),
  );
  return isCovered ? named(rules.findIndex((rule) => rule !== false)) : undefined;
}

/** Says what of a route's answer is a new credential, and which rule lets hands have it as a sealed token. */
export function findMinting(policy: Policy, workspaceId: string, route: PolicyRoute): PolicyMinting {
  const [path, bound] = boundFor(policy, workspaceId);
  const rules = bound.mint ?? [];
  const ofHost = rules.filter((rule) => reaches(rule, route.destination));
  const ofRoute = ofHost.filter((rule) => mints(rule, route));
  const fields = fieldsOf(ofRoute);
  const elsewhere = fieldsOf(ofHost).filter((field) => !fields.includes(field));
  const [first] = ofRoute;
  return { ...(first ? { rule: `${path}.mint[${rules.indexOf(first)}]` } : {}), fields, elsewhere };
}

/** The bound of a workspace and the path by which it is named. */
export function boundFor(policy: Policy, workspaceId: string): [path: string, bound: PolicyBound] {
  const own = Object.hasOwn(policy.workspaces ?? {}, workspaceId) && policy.workspaces?.[workspaceId];
  return own ? [`workspaces.${workspaceId}`, own] : ["default", policy.default];
}

function mints({ methods, paths }: MintRule, { method, path }: PolicyRoute): boolean {
  // What a server decodes, or cuts off, may be another way to a route that nobody named.
  if (/[%;\\]/.test(path)) return false;
  return (methods ?? ["POST"]).includes(method) && paths.some((pattern) => hasPath(pattern, path));
}

function fieldsOf(rules: readonly MintRule[]): string[] {
  return [...new Set(rules.flatMap(({ fields }) => fields))];
}

function reaches(rule: ReachRule, { scheme, host, port, isListedInside }: PolicyDestination): boolean {
  if (rule.to === "listed_inside_hosts") {
    return isListedInside && (rule.ports?.includes(port) ?? true);
  }
  // Names do not open plain HTTP: a credential would travel readable (case A003).
  if (scheme !== "https" || !(rule.ports ?? [443]).includes(port)) return false;
  if (rule.to === "any_public_host") return !isListedInside;
  return rule.to.some((pattern) => hasHost(pattern, host));
}

/** Anchored on both sides, label by label (case A005). */
function hasHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith("*.")) return pattern === host;
  const suffix = pattern.slice(1);
  return host.length > suffix.length && host.endsWith(suffix);
}

function hasName(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** A last segment of ** stands for one or more segments, * for one. */
function hasPath(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.split("/");
  // A parser behind us might walk up where we compared text.
  if (given.some((segment) => segment === "" || segment === "." || segment === "..")) return false;
  const last = wanted.at(-1);
  if (last !== "*" && last !== "**") return pattern === path;
  const fixed = wanted.slice(0, -1);
  const isLongEnough = last === "**" ? given.length > fixed.length : given.length === fixed.length + 1;
  return isLongEnough && fixed.every((segment, i) => segment === given[i]);
}
