/** Roles that reach this service, by name. */
export type CallerRole = "SESSION" | "HARNESS" | "SANDBOX" | "MCP_PROXY" | "GATEWAY" | "OPERATOR" | "CLIENT";

/** Who calls, as far as the rules need to know. */
export interface Caller {
  readonly role: CallerRole;
  /** SPIFFE id, or the id of an API key. */
  readonly subject: string;
  /** Workspace the caller is confined to; null = not confined. */
  readonly workspaceId: string | null;
}

/** Workspace of callers that name none. */
export const DEFAULT_WORKSPACE = "wrkspc_default";

/**
 * Workspace limit of a query: an id, or null for callers that may see every workspace. A caller that is confined
 * but has no workspace does not exist: its role alone never opens anything.
 */
export function scopeOf(caller: Caller): string | null {
  if (caller.role !== "CLIENT") return null;
  if (!caller.workspaceId) throw new Error("a client without a workspace");
  return caller.workspaceId;
}

/**
 * Workspace that a create or list is about. Undefined when a confined caller names another one than its own,
 * which must look like a workspace that does not exist.
 */
export function workspaceOf(caller: Caller, named: string): string | undefined {
  const own = scopeOf(caller);
  if (own === null) return named || DEFAULT_WORKSPACE;
  return named === "" || named === own ? own : undefined;
}
