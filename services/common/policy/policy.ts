/** Where a rule leads: a class of hosts, or names (exact, or `*.suffix` for the subdomains of one). */
export type PolicyTarget = "any_public_host" | "listed_inside_hosts" | readonly string[];

/** Allows a door to reach hosts. */
export interface ReachRule {
  readonly to: PolicyTarget;
  /** Absent = 443 only; with `listed_inside_hosts`, any. */
  readonly ports?: readonly number[];
}

/** Allows repositories and what may be done with them. */
export interface GitRule extends ReachRule {
  readonly repositories: readonly string[];
  readonly operations: readonly ("fetch" | "push")[];
  /** Refs that a push may change; absent = none. */
  readonly refs?: readonly string[];
}

/**
 * Allows a route whose answer is a new credential. What hands get of it is a sealed token, which mcp-proxy opens towards the
 * same host.
 */
export interface MintRule extends ReachRule {
  /** Absent = POST only. */
  readonly methods?: readonly string[];
  /** Paths below the host, without query. */
  readonly paths: readonly string[];
  /** Names of the fields, at any depth of the answer's JSON, that are the new credential. */
  readonly fields: readonly string[];
}

/** Allows models by name. */
export interface ModelRule {
  readonly names: readonly string[];
}

/** What a workspace's sessions may do at most; an absent section allows nothing. */
export interface PolicyBound {
  readonly models?: readonly ModelRule[];
  readonly mcp?: readonly ReachRule[];
  readonly egress?: readonly ReachRule[];
  readonly git?: readonly GitRule[];
  readonly oauth?: readonly ReachRule[];
  readonly mint?: readonly MintRule[];
}

/**
 * The operator's upper bound for a mesh. Rules only ever allow, so their order means nothing and none can take back what
 * another gave: what no rule names is denied.
 */
export interface Policy {
  readonly version: 1;
  readonly default: PolicyBound;
  readonly workspaces?: Readonly<Record<string, PolicyBound>>;
}
