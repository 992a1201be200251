import { formatSeconds, MAX_LEASE_MS } from "../core/duration.ts";
import type { AuthBlock } from "../core/request.ts";
import { badRequest } from "../core/vault-error.ts";
import type { TokenEntry } from "./token-entry.ts";

/** authBlock shows a token that was just made or renewed. */
export function authBlock(token: string, entry: TokenEntry, identityPolicies: readonly string[]): AuthBlock {
  const policies = [...new Set([...entry.policies, ...identityPolicies])].sort();
  return {
    client_token: token,
    accessor: entry.accessor,
    policies,
    token_policies: entry.policies,
    ...(identityPolicies.length > 0 ? { identity_policies: identityPolicies } : {}),
    metadata: entry.metadata,
    lease_duration: entry.expiresAt === null ? 0 : Math.round((entry.expiresAt - Date.now()) / 1000),
    renewable: entry.isRenewable,
    entity_id: entry.entityId,
    token_type: "service",
    orphan: entry.parent === undefined,
    mfa_requirement: null,
    num_uses: entry.usesLeft,
  };
}

/** describeToken is what a lookup tells; the token itself is shown only to who sent it. */
export function describeToken(
  entry: TokenEntry,
  shownToken: string,
  identityPolicies: readonly string[],
): Record<string, unknown> {
  const issuedAt = entry.renewedAt ?? entry.createdAt;
  return {
    accessor: entry.accessor,
    creation_time: formatSeconds(entry.createdAt),
    creation_ttl: formatSeconds(entry.ttlMs),
    display_name: entry.displayName,
    entity_id: entry.entityId,
    expire_time: entry.expiresAt === null ? null : new Date(entry.expiresAt).toISOString(),
    explicit_max_ttl: formatSeconds(entry.explicitMaxTtlMs),
    id: shownToken,
    ...(identityPolicies.length > 0 ? { identity_policies: identityPolicies } : {}),
    ...(entry.expiresAt === null ? {} : { issue_time: new Date(issuedAt).toISOString() }),
    ...(entry.renewedAt === undefined ? {} : { last_renewal_time: formatSeconds(entry.renewedAt) }),
    meta: entry.metadata,
    num_uses: entry.usesLeft,
    orphan: entry.parent === undefined,
    path: entry.path,
    ...(entry.periodMs > 0 ? { period: formatSeconds(entry.periodMs) } : {}),
    policies: entry.policies,
    ...(entry.expiresAt === null ? {} : { renewable: entry.isRenewable }),
    ...(entry.role === undefined ? {} : { role: entry.role }),
    ttl: entry.expiresAt === null ? 0 : formatSeconds(entry.expiresAt - Date.now()),
    type: "service",
  };
}

/** renewed is the entry after a renewal: never past its last moment. */
export function renewed(entry: TokenEntry, incrementMs: number): TokenEntry {
  if (entry.expiresAt === null) throw badRequest("invalid lease ID");
  if (!entry.isRenewable) throw badRequest("lease is not renewable");
  const now = Date.now();
  const wanted = entry.periodMs > 0 ? entry.periodMs : Math.min(incrementMs || entry.ttlMs, MAX_LEASE_MS);
  const last = entry.lastMomentAt ?? Number.POSITIVE_INFINITY;
  return { ...entry, renewedAt: now, expiresAt: Math.min(now + wanted, last) };
}
