import { MAX_LEASE_MS } from "../core/duration.ts";
import { text } from "../core/request.ts";
import type { Handler } from "../core/route.ts";
import { badRequest, VaultError, wrapped } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import { cleanPolicies } from "../token/policy-names.ts";
import { authBlock } from "../token/token-answers.ts";

/** loginWithApprole exchanges a role id and a secret id for a token. */
export function loginWithApprole(state: VaultState): Handler {
  return ({ data }) => {
    const roleId = text(data, "role_id");
    const value = text(data, "secret_id");
    if (roleId === "") throw badRequest("missing role_id");
    if (value === "") throw badRequest("missing secret_id");
    const role = state.approles.findByRoleId(roleId);
    const secretId = role && state.approles.findSecretId(role.name, value);
    // One message for either half, so that a guess learns nothing.
    if (!role || !secretId) throw badRequest("invalid role or secret ID");
    const entity = state.identity.findOrCreateByAlias("approle", roleId);
    if (entity.isDisabled) throw new VaultError(403, wrapped("permission denied"));
    // The use is spent before the token exists: a crash in between costs a login, never gives two.
    state.approles.useSecretId(secretId);
    const now = Date.now();
    const cap = Math.min(
      role.tokenMaxTtlMs || MAX_LEASE_MS,
      role.tokenExplicitMaxTtlMs || MAX_LEASE_MS,
      MAX_LEASE_MS,
    );
    const periodMs = Math.min(role.tokenPeriodMs, MAX_LEASE_MS);
    const ttlMs = Math.min(periodMs || role.tokenTtlMs || MAX_LEASE_MS, cap);
    const { token, entry } = state.tokens.create({
      policies: cleanPolicies(role.tokenPolicies, !role.hasNoDefaultPolicy),
      path: "auth/approle/login",
      metadata: { ...secretId.metadata, role_name: role.name },
      displayName: "approle",
      entityId: entity.id,
      isRenewable: true,
      usesLeft: role.tokenNumUses,
      ttlMs,
      expiresAt: now + ttlMs,
      periodMs,
      explicitMaxTtlMs: role.tokenExplicitMaxTtlMs,
      lastMomentAt: periodMs > 0 && role.tokenExplicitMaxTtlMs === 0 ? null : now + cap,
    });
    return { auth: authBlock(token, entry, entity.policies) };
  };
}
