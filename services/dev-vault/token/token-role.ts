import type { Store } from "../barrier/store.ts";
import { parseDuration } from "../core/duration.ts";
import { count, flag, names, text } from "../core/request.ts";
import { badRequest } from "../core/vault-error.ts";

/** TokenRole limits the tokens that are made through it. */
export interface TokenRole {
  readonly name: string;
  readonly allowedPolicies: readonly string[];
  readonly disallowedPolicies: readonly string[];
  readonly allowedEntityAliases: readonly string[];
  readonly isOrphan: boolean;
  readonly isRenewable: boolean;
  readonly pathSuffix: string;
  readonly explicitMaxTtlMs: number;
  readonly periodMs: number;
  readonly numUses: number;
  readonly hasNoDefaultPolicy: boolean;
}

const FIELDS = [
  "role_name",
  "allowed_policies",
  "disallowed_policies",
  "allowed_entity_aliases",
  "orphan",
  "renewable",
  "path_suffix",
  "explicit_max_ttl",
  "token_explicit_max_ttl",
  "period",
  "token_period",
  "token_num_uses",
  "token_no_default_policy",
  "token_type",
];

/** TokenRoles keeps the token roles. */
export class TokenRoles {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  read(name: string): TokenRole | undefined {
    return this.#store.get<TokenRole>(`token/role/${name}`);
  }

  list(): string[] {
    return this.#store.keys("token/role/").map((key) => key.slice("token/role/".length));
  }

  delete(name: string): void {
    this.#store.delete(`token/role/${name}`);
  }

  /** write creates or changes a role; what is not given stays as it was. A field we would ignore is refused. */
  write(name: string, data: Readonly<Record<string, unknown>>): void {
    for (const field of Object.keys(data)) {
      if (!FIELDS.includes(field)) throw badRequest(`field "${field}" is not supported here`);
    }
    const type = text(data, "token_type");
    if (!["", "default", "service", "default-service"].includes(type)) {
      throw badRequest(`'token_type' value "${type}" is not supported here`);
    }
    const before = this.read(name);
    const lower = (list: string[] | undefined) => list?.map((item) => item.toLowerCase());
    const maxTtl = data.token_explicit_max_ttl ?? data.explicit_max_ttl;
    const period = data.token_period ?? data.period;
    const role: TokenRole = {
      name,
      allowedPolicies: lower(names(data, "allowed_policies")) ?? before?.allowedPolicies ?? [],
      disallowedPolicies: lower(names(data, "disallowed_policies")) ?? before?.disallowedPolicies ?? [],
      allowedEntityAliases:
        lower(names(data, "allowed_entity_aliases")) ?? before?.allowedEntityAliases ?? [],
      isOrphan: flag(data, "orphan") ?? before?.isOrphan ?? false,
      isRenewable: flag(data, "renewable") ?? before?.isRenewable ?? true,
      pathSuffix: data.path_suffix === undefined ? (before?.pathSuffix ?? "") : text(data, "path_suffix"),
      explicitMaxTtlMs:
        maxTtl === undefined
          ? (before?.explicitMaxTtlMs ?? 0)
          : parseDuration(maxTtl, "token_explicit_max_ttl"),
      periodMs: period === undefined ? (before?.periodMs ?? 0) : parseDuration(period, "token_period"),
      numUses: count(data, "token_num_uses") ?? before?.numUses ?? 0,
      hasNoDefaultPolicy: flag(data, "token_no_default_policy") ?? before?.hasNoDefaultPolicy ?? false,
    };
    this.#store.put(`token/role/${name}`, role);
  }
}
