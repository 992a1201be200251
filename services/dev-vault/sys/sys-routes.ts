import { names, text, type VaultAnswer } from "../core/request.ts";
import type { Route } from "../core/route.ts";
import { badRequest } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import type { Acl } from "../policy/acl.ts";
import { known } from "../token/token-routes.ts";
import { wrappingRoutes } from "../wrapping/wrapping-routes.ts";
import { auditRoutes } from "./audit-routes.ts";
import { mountRoutes } from "./mount-routes.ts";
import { policyRoutes } from "./policy-routes.ts";

/** sysRoutes are the routes of `sys/` that need an unsealed vault; `seal` is carried out by who calls this. */
export function sysRoutes(state: VaultState, seal: () => void): Route[] {
  return [
    ...mountRoutes(state),
    ...policyRoutes(state),
    ...auditRoutes(state),
    ...wrappingRoutes(state),
    {
      path: "capabilities-self",
      handlers: {
        update: (call) => capabilitiesOf(known(call).acl, call.data),
      },
    },
    {
      path: "capabilities",
      handlers: {
        update: (call) => {
          const entry = state.tokens.find(text(call.data, "token"));
          if (!entry) throw badRequest("invalid token");
          return capabilitiesOf(state.aclOf(entry).acl, call.data);
        },
      },
    },
    {
      path: "seal",
      needsSudo: true,
      handlers: {
        update: () => {
          seal();
          return undefined;
        },
      },
    },
  ];
}

function capabilitiesOf(acl: Acl, data: Readonly<Record<string, unknown>>): VaultAnswer {
  const paths = [...(names(data, "paths") ?? []), ...(names(data, "path") ?? [])];
  const [first] = paths;
  if (first === undefined) throw badRequest("paths must be supplied");
  const found = Object.fromEntries(paths.map((path) => [path, acl.capabilities(path)]));
  const all = paths.length === 1 ? { ...found, capabilities: acl.capabilities(first) } : found;
  return { repeatsData: true, data: all };
}
