import type { Store } from "../barrier/store.ts";
import { badRequest } from "../core/vault-error.ts";
import type { Entity } from "../identity/entity.ts";
import { Acl } from "./acl.ts";
import { DEFAULT_POLICY, RESPONSE_WRAPPING_POLICY } from "./built-in-policies.ts";
import { type PathRule, parsePolicy } from "./parse-policy.ts";
import { fillTemplate } from "./template.ts";

/** PolicyRecord is a policy as it was written. */
export interface PolicyRecord {
  readonly name: string;
  readonly policy: string;
  readonly version: number;
  readonly modified: string;
}

const FIXED = ["root", "response-wrapping"];

/** PolicyStore keeps the ACL policies and makes a caller's Acl from their names. */
export class PolicyStore {
  readonly #store: Store;
  readonly #parsed = new Map<string, PathRule[]>();

  constructor(store: Store) {
    this.#store = store;
  }

  read(name: string): PolicyRecord | undefined {
    if (name === "root") return { name, policy: "", version: 0, modified: "" };
    const stored = this.#store.get<PolicyRecord>(key(name));
    if (stored) return stored;
    if (name === "default") return { name, policy: DEFAULT_POLICY, version: 1, modified: "" };
    if (name === "response-wrapping")
      return { name, policy: RESPONSE_WRAPPING_POLICY, version: 1, modified: "" };
    return undefined;
  }

  write(name: string, policy: string): void {
    if (FIXED.includes(name)) throw badRequest(`cannot update "${name}" policy`);
    try {
      parsePolicy(policy);
    } catch (cause) {
      throw badRequest(`failed to parse policy: ${(cause as Error).message}`);
    }
    const version = (this.read(name)?.version ?? 0) + 1;
    this.#store.put(key(name), { name, policy, version, modified: new Date().toISOString() });
    this.#parsed.delete(name);
  }

  delete(name: string): void {
    if (name === "default") throw badRequest("cannot delete default policy");
    if (FIXED.includes(name)) throw badRequest(`cannot delete "${name}" policy`);
    this.#store.delete(key(name));
    this.#parsed.delete(name);
  }

  list(): string[] {
    const stored = this.#store.keys("policy/").map((entry) => entry.slice("policy/".length));
    return [...new Set(["default", "root", ...stored])].sort();
  }

  /** acl is what these policies grant to this entity; a policy that does not exist grants nothing. */
  acl(policies: readonly string[], entity: Entity | undefined): Acl {
    const rules: PathRule[] = [];
    for (const name of policies) {
      for (const rule of this.#rules(name)) {
        const path = fillTemplate(rule.path, entity);
        if (path !== undefined) rules.push({ ...rule, path });
      }
    }
    return new Acl(rules, policies.includes("root"));
  }

  #rules(name: string): PathRule[] {
    let rules = this.#parsed.get(name);
    if (!rules) {
      const record = this.read(name);
      rules = record ? parsePolicy(record.policy) : [];
      this.#parsed.set(name, rules);
    }
    return rules;
  }
}

function key(name: string): string {
  return `policy/${name}`;
}
