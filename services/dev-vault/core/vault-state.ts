import { ApproleStore } from "../approle/approle-store.ts";
import { AuditBroker } from "../audit/audit-broker.ts";
import type { Store } from "../barrier/store.ts";
import type { Entity } from "../identity/entity.ts";
import { IdentityStore } from "../identity/identity-store.ts";
import type { Acl } from "../policy/acl.ts";
import { PolicyStore } from "../policy/policy-store.ts";
import type { TokenEntry } from "../token/token-entry.ts";
import { TokenRoles } from "../token/token-role.ts";
import { TokenStore } from "../token/token-store.ts";
import { MountTable } from "./mount-table.ts";

/** VaultState is everything an unsealed vault knows; it is dropped as a whole when the vault is sealed. */
export interface VaultState {
  readonly store: Store;
  readonly mounts: MountTable;
  readonly policies: PolicyStore;
  readonly tokens: TokenStore;
  readonly tokenRoles: TokenRoles;
  readonly identity: IdentityStore;
  readonly approles: ApproleStore;
  readonly audit: AuditBroker;
  /** aclOf is what a token may do: its own policies and its entity's. */
  aclOf(entry: TokenEntry): { entity: Entity | undefined; policies: readonly string[]; acl: Acl };
}

/** openState builds the state over an opened store. */
export function openState(store: Store): VaultState {
  const mounts = new MountTable(store);
  const policies = new PolicyStore(store);
  const identity = new IdentityStore(store, mounts);
  return {
    store,
    mounts,
    policies,
    tokens: new TokenStore(store),
    tokenRoles: new TokenRoles(store),
    identity,
    approles: new ApproleStore(store),
    audit: new AuditBroker(store),
    aclOf: (entry) => {
      const entity = entry.entityId === "" ? undefined : identity.get(entry.entityId);
      const names = [...new Set([...entry.policies, ...(entity?.policies ?? [])])].sort();
      return { entity, policies: names, acl: policies.acl(names, entity) };
    },
  };
}
