import { formatSeconds } from "../core/duration.ts";
import type { Route } from "../core/route.ts";
import { notFound } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import type { TokenRole } from "./token-role.ts";

/** tokenRoleRoutes are the routes of `auth/token/roles`. */
export function tokenRoleRoutes(state: VaultState): Route[] {
  const write: Route["handlers"][keyof Route["handlers"]] = (call) => {
    state.tokenRoles.write(call.params.name as string, call.data);
    return undefined;
  };
  return [
    {
      path: "roles",
      handlers: {
        list: () => {
          const keys = state.tokenRoles.list();
          if (keys.length === 0) throw notFound();
          return { data: { keys } };
        },
      },
    },
    {
      path: "roles/:name",
      exists: (params) => state.tokenRoles.read(params.name as string) !== undefined,
      handlers: {
        create: write,
        update: write,
        read: (call) => {
          const role = state.tokenRoles.read(call.params.name as string);
          if (!role) throw notFound();
          return { data: describe(role) };
        },
        delete: (call) => {
          state.tokenRoles.delete(call.params.name as string);
          return undefined;
        },
      },
    },
  ];
}

function describe(role: TokenRole): Record<string, unknown> {
  return {
    allowed_entity_aliases: role.allowedEntityAliases,
    allowed_policies: role.allowedPolicies,
    allowed_policies_glob: [],
    disallowed_policies: role.disallowedPolicies,
    disallowed_policies_glob: [],
    explicit_max_ttl: 0,
    name: role.name,
    orphan: role.isOrphan,
    path_suffix: role.pathSuffix,
    period: 0,
    renewable: role.isRenewable,
    token_explicit_max_ttl: formatSeconds(role.explicitMaxTtlMs),
    token_no_default_policy: role.hasNoDefaultPolicy,
    ...(role.numUses > 0 ? { token_num_uses: role.numUses } : {}),
    token_period: formatSeconds(role.periodMs),
    token_type: "service",
  };
}
