import { parseDuration } from "../core/duration.ts";
import { text, type VaultAnswer } from "../core/request.ts";
import type { Call, Handler, Route } from "../core/route.ts";
import { badRequest, notFound, VaultError, wrapped } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import type { Caller } from "./caller.ts";
import { planToken } from "./create-token.ts";
import { authBlock, describeToken, renewed } from "./token-answers.ts";
import type { TokenEntry } from "./token-entry.ts";
import { tokenRoleRoutes } from "./token-role-routes.ts";

/** tokenRoutes are the routes of `auth/token/`. */
export function tokenRoutes(state: VaultState): Route[] {
  const identityPolicies = (entry: TokenEntry) => state.identity.policiesOf(entry.entityId);
  const describe = (entry: TokenEntry, token: string): VaultAnswer => ({
    data: describeToken(entry, token, identityPolicies(entry)),
  });
  const create =
    (isOrphanPath: boolean): Handler =>
    (call) => {
      const name = call.params.role;
      const role = name === undefined ? undefined : state.tokenRoles.read(name);
      if (name !== undefined && !role) throw badRequest(`unknown role ${name}`);
      const request = { caller: known(call), data: call.data, path: call.request.path, role, isOrphanPath };
      const { token: plan, warnings } = planToken(request, state.identity);
      for (const policy of plan.policies) {
        if (!state.policies.read(policy)) warnings.push(`Policy "${policy}" does not exist`);
      }
      const { token, entry } = state.tokens.create(plan);
      return { auth: authBlock(token, entry, identityPolicies(entry)), warnings };
    };
  const renew = (entry: TokenEntry, token: string, data: Call["data"]): VaultAnswer => {
    const after = renewed(entry, parseDuration(data.increment, "increment"));
    state.tokens.update(after);
    return { auth: authBlock(token, after, identityPolicies(after)) };
  };
  const byToken = (call: Call): { token: string; entry: TokenEntry | undefined } => {
    const token = text(call.data, "token");
    if (token === "") throw badRequest(wrapped("missing token"));
    return { token, entry: state.tokens.find(token) };
  };
  const byAccessor = (call: Call): TokenEntry | undefined => {
    const accessor = text(call.data, "accessor");
    if (accessor === "") throw badRequest(wrapped("missing accessor"));
    return state.tokens.findByAccessor(accessor);
  };
  const route = (path: string, handlers: Route["handlers"], extra: Partial<Route> = {}): Route => ({
    path,
    handlers,
    ...extra,
  });

  return [
    route("create", { update: create(false) }),
    route("create/:role", { update: create(false) }),
    route("create-orphan", { update: create(true) }),
    route("lookup-self", { read: (call) => describe(known(call).entry, known(call).token) }),
    route("lookup", {
      update: (call) => {
        const { token, entry } = byToken(call);
        if (!entry) throw new VaultError(403, "bad token");
        return describe(entry, token);
      },
    }),
    route("lookup-accessor", {
      update: (call) => {
        const entry = byAccessor(call);
        if (!entry) throw badRequest(wrapped("invalid accessor"));
        return describe(entry, "");
      },
    }),
    route("renew-self", { update: (call) => renew(known(call).entry, known(call).token, call.data) }),
    route("renew", {
      update: (call) => {
        const { token, entry } = byToken(call);
        if (!entry) throw badRequest("token not found");
        return renew(entry, token, call.data);
      },
    }),
    route("renew-accessor", {
      update: (call) => {
        const entry = byAccessor(call);
        if (!entry) throw badRequest(wrapped("invalid accessor"));
        return renew(entry, "", call.data);
      },
    }),
    route("revoke-self", {
      update: (call) => {
        state.tokens.revoke(known(call).entry.hash);
        return undefined;
      },
    }),
    route("revoke", {
      update: (call) => {
        const { entry } = byToken(call);
        if (entry) state.tokens.revoke(entry.hash);
        return undefined;
      },
    }),
    route("revoke-accessor", {
      update: (call) => {
        const entry = byAccessor(call);
        if (!entry) return { data: null, warnings: ["No token found with this accessor"] };
        state.tokens.revoke(entry.hash);
        return undefined;
      },
    }),
    route(
      "revoke-orphan",
      {
        update: (call) => {
          const { entry } = byToken(call);
          if (!entry) throw badRequest("token to revoke not found");
          state.tokens.revokeOrphan(entry.hash);
          return undefined;
        },
      },
      { needsSudo: true },
    ),
    route("accessors", { list: () => listed(state.tokens.accessors()) }, { needsSudo: true }),
    ...tokenRoleRoutes(state),
  ];
}

/** listed is the answer of a list operation; an empty list is a 404. */
export function listed(keys: readonly string[]): VaultAnswer {
  if (keys.length === 0) throw notFound();
  return { data: { keys } };
}

/** known is the caller of a route that is not open. */
export function known(call: Call): Caller {
  if (!call.caller) throw new VaultError(403, "permission denied");
  return call.caller;
}
