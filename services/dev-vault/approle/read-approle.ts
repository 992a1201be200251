import { randomUUID } from "node:crypto";
import { formatSeconds, parseDuration } from "../core/duration.ts";
import { count, flag, names, text } from "../core/request.ts";
import { badRequest, wrapped } from "../core/vault-error.ts";
import type { Approle } from "./approle-store.ts";

type Data = Readonly<Record<string, unknown>>;

const FIELDS = [
  "role_name",
  "role_id",
  "bind_secret_id",
  "secret_id_num_uses",
  "secret_id_ttl",
  "token_policies",
  "policies",
  "token_ttl",
  "token_max_ttl",
  "token_explicit_max_ttl",
  "token_period",
  "token_num_uses",
  "token_no_default_policy",
  "token_type",
];

/** readApprole makes the role that a write asks for. A field that would be ignored is refused instead. */
export function readApprole(name: string, data: Data, before: Approle | undefined): Approle {
  for (const field of Object.keys(data)) {
    if (!FIELDS.includes(field)) throw badRequest(`field "${field}" is not supported here`);
  }
  const type = text(data, "token_type");
  if (!["", "default", "service", "default-service"].includes(type)) {
    throw badRequest(`'token_type' value "${type}" is not supported here`);
  }
  const duration = (field: string, old: number | undefined) =>
    data[field] === undefined ? (old ?? 0) : parseDuration(data[field], field);
  const bindsSecretId = flag(data, "bind_secret_id") ?? before?.bindsSecretId ?? true;
  if (!bindsSecretId) {
    throw badRequest(wrapped("at least one constraint should be enabled on the role"));
  }
  const policies = names(data, "token_policies") ?? names(data, "policies");
  return {
    name,
    roleId: text(data, "role_id") || before?.roleId || randomUUID(),
    bindsSecretId,
    secretIdNumUses: count(data, "secret_id_num_uses") ?? before?.secretIdNumUses ?? 0,
    secretIdTtlMs: duration("secret_id_ttl", before?.secretIdTtlMs),
    tokenPolicies: policies?.map((policy) => policy.toLowerCase()) ?? before?.tokenPolicies ?? [],
    tokenTtlMs: duration("token_ttl", before?.tokenTtlMs),
    tokenMaxTtlMs: duration("token_max_ttl", before?.tokenMaxTtlMs),
    tokenExplicitMaxTtlMs: duration("token_explicit_max_ttl", before?.tokenExplicitMaxTtlMs),
    tokenPeriodMs: duration("token_period", before?.tokenPeriodMs),
    tokenNumUses: count(data, "token_num_uses") ?? before?.tokenNumUses ?? 0,
    hasNoDefaultPolicy: flag(data, "token_no_default_policy") ?? before?.hasNoDefaultPolicy ?? false,
  };
}

/** describeApprole shows a role as Vault does. */
export function describeApprole(role: Approle): Record<string, unknown> {
  return {
    bind_secret_id: role.bindsSecretId,
    local_secret_ids: false,
    secret_id_bound_cidrs: null,
    secret_id_num_uses: role.secretIdNumUses,
    secret_id_ttl: formatSeconds(role.secretIdTtlMs),
    token_bound_cidrs: [],
    token_explicit_max_ttl: formatSeconds(role.tokenExplicitMaxTtlMs),
    token_max_ttl: formatSeconds(role.tokenMaxTtlMs),
    token_no_default_policy: role.hasNoDefaultPolicy,
    token_num_uses: role.tokenNumUses,
    token_period: formatSeconds(role.tokenPeriodMs),
    token_policies: role.tokenPolicies,
    token_ttl: formatSeconds(role.tokenTtlMs),
    token_type: "default",
  };
}
