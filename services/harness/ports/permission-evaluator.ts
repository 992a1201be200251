/** One call of the model that the policy "auto" has to decide on, before it is written down and long before it runs. */
export interface JudgedCall {
  /** "built-in" runs in a hand, "mcp" at a server outside. */
  kind: "built-in" | "mcp";
  /** Name as the hand or the server knows it. */
  name: string;
  /** MCP only; empty otherwise. */
  serverName: string;
  /** The call's input, parsed. */
  input: Readonly<Record<string, unknown>>;
  /** MCP only: what the server says of the tool. A claim of the server, not a fact. */
  annotations: Readonly<Record<string, unknown>>;
  session: {
    sessionId: string;
    workspaceId: string;
    /** True when built-in tools run on the client's own machine and not in one of our hands. */
    isSelfHosted: boolean;
  };
}

/** What an evaluator says. Whatever is not one of these counts as { decision: "ask" }. */
export type Verdict =
  | { decision: "allow" }
  /** A person decides. */
  | { decision: "ask" }
  /** Never runs; the model is told. */
  | { decision: "deny"; reason: "high_risk" | "indeterminate" };

/**
 * Decides on calls under the permission policy "auto". Its answer is a suggestion that can only be narrowed: one that
 * throws, takes too long or answers something else asks a person and never allows.
 */
export interface PermissionEvaluator {
  /** Name and version, for example "rules/1"; recorded with each call: 1 to 64 characters [A-Za-z0-9._-], one slash. */
  readonly name: string;
  evaluate(call: JudgedCall, signal: AbortSignal): Verdict | Promise<Verdict>;
}
