import type { PolicyMinting } from "../../common/policy/judge-policy.ts";
import type { Destination } from "./canonical-url.ts";
import type { LedgerRecord } from "./ports.ts";
import { proxyError, type Reason } from "./proxy-error.ts";

/** What a door asks the operator's policy. */
export type BoundQuestion =
  | { readonly door: "models"; readonly model: string }
  | { readonly door: "mcp" | "egress" | "oauth"; readonly destination: Destination }
  | {
      readonly door: "git";
      readonly destination: Destination;
      readonly operation: "fetch" | "push";
      /** Refs that a push changes; empty while it only asks what is there. */
      readonly refs: readonly string[];
    };

/** A request whose answer may be a new credential. */
export interface MintRoute {
  readonly destination: Destination;
  readonly method: string;
  /** Path as it is sent; a query is not looked at. */
  readonly path: string;
}

/** The operator's upper bound: what no rule of it allows is denied, whatever agents and vaults say. */
export interface Bound {
  /** The policy in force, by digest, and the rule that allows; absent = none does. */
  judge(workspaceId: string, question: BoundQuestion): { digest: string; rule?: string };
}

/** Says what of a request's answer is a new credential, and whether hands may have it sealed (case A066). */
export type MintBound = (workspaceId: string, route: MintRoute) => PolicyMinting;

/**
 * Asks the operator's policy, and notes in the record of whoever is judged by which policy and rule; throws for what no rule
 * allows.
 */
export function askBound(
  bound: Bound,
  record: Pick<LedgerRecord, "workspace_id" | "policy_digest" | "rule_id">,
  question: BoundQuestion,
): void {
  const { digest, rule } = bound.judge(record.workspace_id, question);
  record.policy_digest = digest;
  record.rule_id = rule ?? "";
  if (rule === undefined) throw beyondBound(question);
}

const DENIALS: Record<BoundQuestion["door"], Reason> = {
  models: "MODEL_NOT_ALLOWED",
  mcp: "DEST_NOT_ALLOWED",
  egress: "DEST_NOT_ALLOWED",
  oauth: "DEST_NOT_ALLOWED",
  git: "REPO_NOT_ALLOWED",
};

/** The denial of what no rule allows. A push has been let ask what is there by then, so it is its refs that go too far. */
export function beyondBound(question: BoundQuestion): Error {
  const message = "the operator's policy does not allow it";
  if (question.door === "git" && question.refs.length > 0) {
    const metadata = { refs: question.refs.join(" ").slice(0, 1024) };
    return proxyError("REF_NOT_ALLOWED", { message, metadata });
  }
  return proxyError(DENIALS[question.door], { message });
}
