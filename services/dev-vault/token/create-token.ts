import { MAX_LEASE_MS, parseDuration } from "../core/duration.ts";
import { count, flag, names, stringMap, text } from "../core/request.ts";
import { badRequest, VaultError } from "../core/vault-error.ts";
import type { IdentityStore } from "../identity/identity-store.ts";
import { globMatches } from "../policy/parameters.ts";
import type { Caller } from "./caller.ts";
import { cleanPolicies } from "./policy-names.ts";
import type { TokenRole } from "./token-role.ts";
import type { NewToken } from "./token-store.ts";

type Data = Readonly<Record<string, unknown>>;

/** TokenRequest is a request to make a token, with what its path decided. */
export interface TokenRequest {
  readonly caller: Caller;
  readonly data: Data;
  readonly path: string;
  readonly role: TokenRole | undefined;
  readonly isOrphanPath: boolean;
}

const FIELDS = [
  "role_name",
  "policies",
  "meta",
  "metadata",
  "no_parent",
  "no_default_policy",
  "renewable",
  "ttl",
  "lease",
  "type",
  "explicit_max_ttl",
  "display_name",
  "num_uses",
  "period",
  "entity_alias",
];

/** planToken turns a request into the token to make, or refuses it as Vault does. */
export function planToken(
  request: TokenRequest,
  identity: IdentityStore,
): { token: NewToken; warnings: string[] } {
  const { caller, data, role } = request;
  for (const field of Object.keys(data)) {
    if (!FIELDS.includes(field)) throw badRequest(`field "${field}" is not supported here`);
  }
  const type = text(data, "type");
  if (type !== "" && type !== "service") throw badRequest(`token type "${type}" is not supported here`);
  const hasSudo = caller.acl.hasSudo(request.path);
  if (caller.entry.usesLeft !== 0) throw badRequest("restricted use token cannot generate child tokens");
  const wantsNoParent = flag(data, "no_parent") ?? false;
  if (wantsNoParent && !hasSudo) {
    throw badRequest("root or sudo privileges required to create orphan token");
  }
  const isOrphan = role ? role.isOrphan : request.isOrphanPath || wantsNoParent;
  const warnings: string[] = [];
  const life = planLife(request, hasSudo, warnings);
  const entityId = chooseEntity(request, identity, isOrphan);
  const token: NewToken = {
    ...(isOrphan ? {} : { parent: caller.entry.hash }),
    policies: choosePolicies(request, hasSudo),
    path: role?.pathSuffix ? `${request.path}/${role.pathSuffix}` : request.path,
    metadata: stringMap(data, "meta") ?? stringMap(data, "metadata") ?? null,
    displayName: displayName(text(data, "display_name")),
    entityId,
    ...(role ? { role: role.name } : {}),
    usesLeft: smallest(count(data, "num_uses") ?? 0, role?.numUses ?? 0),
    ...life,
  };
  return { token, warnings };
}

function planLife(
  request: TokenRequest,
  hasSudo: boolean,
  warnings: string[],
): Pick<NewToken, "isRenewable" | "ttlMs" | "expiresAt" | "periodMs" | "explicitMaxTtlMs" | "lastMomentAt"> {
  const { data, role } = request;
  const ttlText = data.ttl ?? data.lease;
  const asked = parseDuration(ttlText, "ttl");
  const explicitMaxTtlMs = parseDuration(data.explicit_max_ttl, "explicit_max_ttl");
  const ownPeriod = parseDuration(data.period, "period");
  if (ownPeriod > 0 && !role && !hasSudo) {
    throw badRequest("root or sudo privileges required to create periodic token");
  }
  const periodMs = Math.min(smallest(ownPeriod, role?.periodMs ?? 0), MAX_LEASE_MS);
  const bound = smallest(explicitMaxTtlMs, role?.explicitMaxTtlMs ?? 0);
  const wantsRoot = choosePolicies(request, hasSudo).includes("root");
  const isEndless = wantsRoot && asked === 0 && bound === 0 && periodMs === 0;
  const isRenewable = (flag(data, "renewable") ?? true) && (role?.isRenewable ?? true) && !isEndless;
  if (isEndless) {
    return { isRenewable, ttlMs: 0, expiresAt: null, periodMs, explicitMaxTtlMs, lastMomentAt: null };
  }
  const now = Date.now();
  const cap = bound > 0 ? Math.min(bound, MAX_LEASE_MS) : MAX_LEASE_MS;
  const wanted = periodMs > 0 ? periodMs : asked || MAX_LEASE_MS;
  const ttlMs = Math.min(wanted, cap);
  if (asked > cap) {
    warnings.push(
      `TTL of "${String(ttlText)}" exceeded the effective max_ttl; TTL value is capped accordingly`,
    );
  }
  const lastMomentAt = periodMs > 0 && bound === 0 ? null : now + cap;
  return { isRenewable, ttlMs, expiresAt: now + ttlMs, periodMs, explicitMaxTtlMs, lastMomentAt };
}

function choosePolicies(request: TokenRequest, hasSudo: boolean): string[] {
  const { caller, data, role } = request;
  const asked = names(data, "policies") ?? [];
  const wantsNoDefault = flag(data, "no_default_policy") ?? false;
  if (role) return choosePoliciesOfRole(asked, role, wantsNoDefault);
  const own = caller.entry.policies;
  const hasDefault = own.includes("default") || own.includes("root");
  const policies = cleanPolicies(asked.length > 0 ? asked : own, hasDefault && !wantsNoDefault);
  if (own.includes("root")) return policies;
  if (policies.includes("root")) {
    throw badRequest("root tokens may not be created without parent token being root");
  }
  if (!hasSudo && !policies.every((policy) => own.includes(policy))) {
    throw badRequest("child policies must be subset of parent");
  }
  return policies;
}

function choosePoliciesOfRole(asked: readonly string[], role: TokenRole, wantsNoDefault: boolean): string[] {
  const hasDefault =
    !role.hasNoDefaultPolicy && !wantsNoDefault && !role.disallowedPolicies.includes("default");
  const wanted = cleanPolicies(asked, false);
  const list = (items: readonly string[]) => JSON.stringify(items);
  if (role.allowedPolicies.length === 0) {
    // Vault lets such a role inherit the caller's policies; nothing here needs that.
    throw badRequest(`role ${role.name} allows no policies`);
  }
  if (!wanted.every((policy) => role.allowedPolicies.includes(policy))) {
    throw badRequest(
      `token policies (${list(wanted)}) must be subset of the role's allowed policies (${list(role.allowedPolicies)}) or glob policies ([])`,
    );
  }
  const policies = cleanPolicies(wanted.length > 0 ? wanted : role.allowedPolicies, hasDefault);
  const refused = policies.find((policy) => role.disallowedPolicies.includes(policy));
  if (refused) throw badRequest(`token policy "${refused}" is disallowed by this role`);
  if (policies.includes("root")) throw badRequest("a token role cannot give the root policy");
  return policies;
}

function chooseEntity(request: TokenRequest, identity: IdentityStore, isOrphan: boolean): string {
  const { caller, data, role } = request;
  const alias = text(data, "entity_alias").toLowerCase();
  if (alias === "") return isOrphan ? "" : caller.entry.entityId;
  if (!role) throw badRequest("'entity_alias' is only allowed in combination with token role");
  if (!role.allowedEntityAliases.some((pattern) => globMatches(pattern, alias))) {
    throw badRequest("invalid 'entity_alias' value");
  }
  const entity = identity.findOrCreateByAlias("token", alias);
  if (entity.isDisabled) throw new VaultError(403, "entity from given entity alias is disabled");
  return entity.id;
}

function displayName(asked: string): string {
  const clean = asked.replace(/[^a-zA-Z0-9-]/g, "-").replace(/-+$/, "");
  return clean === "" ? "token" : `token-${clean}`;
}

/** 0 stands for "no limit". */
function smallest(a: number, b: number): number {
  return a > 0 && b > 0 ? Math.min(a, b) : Math.max(a, b);
}
