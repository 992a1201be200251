import { randomUUID } from "node:crypto";
import type { Store } from "../barrier/store.ts";
import type { MountTable } from "../core/mount-table.ts";
import { badRequest } from "../core/vault-error.ts";
import type { Alias, Entity } from "./entity.ts";

const PREFIX = "identity/entity/";

/** EntityChange is what a write may set; what is left out stays. */
export interface EntityChange {
  readonly name?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly policies?: readonly string[];
  readonly isDisabled?: boolean;
}

/** IdentityStore keeps the entities and their aliases. Names and aliases are compared in lower case. */
export class IdentityStore {
  readonly #store: Store;
  readonly #mounts: MountTable;

  constructor(store: Store, mounts: MountTable) {
    this.#store = store;
    this.#mounts = mounts;
  }

  list(): Entity[] {
    return this.#store.keys(PREFIX).map((key) => this.#store.get<Entity>(key) as Entity);
  }

  get(id: string): Entity | undefined {
    return this.#store.get<Entity>(PREFIX + id);
  }

  findByName(name: string): Entity | undefined {
    return this.list().find((entity) => entity.name.toLowerCase() === name.toLowerCase());
  }

  findByAlias(mountAccessor: string, name: string): Entity | undefined {
    return this.list().find((entity) => entity.aliases.some((alias) => isAlias(alias, mountAccessor, name)));
  }

  /** policiesOf are the policies that an entity adds to its tokens. */
  policiesOf(entityId: string): readonly string[] {
    return entityId === "" ? [] : (this.get(entityId)?.policies ?? []);
  }

  /** write creates or changes an entity and tells whether it is new. */
  write(existing: Entity | undefined, change: EntityChange): { entity: Entity; isNew: boolean } {
    if (change.policies?.some((policy) => policy.toLowerCase() === "root")) {
      throw badRequest("policies cannot contain root");
    }
    const namesake = change.name ? this.findByName(change.name) : undefined;
    if (namesake && namesake.id !== existing?.id) throw badRequest("entity name is already in use");
    const now = new Date().toISOString();
    const id = existing?.id ?? randomUUID();
    const entity: Entity = {
      id,
      name: change.name || existing?.name || `entity_${id.slice(0, 8)}`,
      metadata: change.metadata ?? existing?.metadata ?? {},
      policies: change.policies ?? existing?.policies ?? [],
      isDisabled: change.isDisabled ?? existing?.isDisabled ?? false,
      aliases: existing?.aliases ?? [],
      createdAt: existing?.createdAt ?? now,
      updatedAt: now,
    };
    this.#put(entity);
    return { entity, isNew: existing === undefined };
  }

  delete(id: string): void {
    this.#store.delete(PREFIX + id);
  }

  /** findOrCreateByAlias is what a login does: the alias's entity, made on the first time. */
  findOrCreateByAlias(authType: string, name: string): Entity {
    const mount = this.#mounts.ofType("auth", authType);
    if (!mount) throw badRequest(`no auth mount of type ${authType}`);
    const known = this.findByAlias(mount.accessor, name);
    if (known) return known;
    const { entity } = this.write(undefined, {});
    this.putAlias(entity, mount.accessor, name);
    return this.get(entity.id) as Entity;
  }

  /** putAlias gives an entity an alias; an entity has at most one for each mount. */
  putAlias(entity: Entity, mountAccessor: string, name: string): { alias: Alias; isNew: boolean } {
    const mount = this.#mounts.findByAccessor(mountAccessor);
    if (mount?.kind !== "auth") throw badRequest(`invalid mount accessor "${mountAccessor}"`);
    const owner = this.findByAlias(mountAccessor, name);
    const known = owner?.aliases.find((alias) => isAlias(alias, mountAccessor, name));
    const other = entity.aliases.find((alias) => alias.mountAccessor === mountAccessor);
    if (other && other.id !== known?.id) {
      throw badRequest("Alias already exists for requested entity and mount accessor");
    }
    const now = new Date().toISOString();
    const alias: Alias = {
      id: known?.id ?? randomUUID(),
      name,
      mountAccessor,
      mountPath: `auth/${mount.path}`,
      mountType: mount.type,
      createdAt: known?.createdAt ?? now,
      updatedAt: now,
    };
    if (owner && known && owner.id !== entity.id) this.removeAlias(owner, known.id);
    const others = entity.aliases.filter((candidate) => candidate.id !== alias.id);
    this.#put({ ...entity, aliases: [...others, alias] });
    return { alias, isNew: known === undefined };
  }

  removeAlias(entity: Entity, aliasId: string): void {
    this.#put({ ...entity, aliases: entity.aliases.filter((alias) => alias.id !== aliasId) });
  }

  #put(entity: Entity): void {
    this.#store.put(PREFIX + entity.id, entity);
  }
}

function isAlias(alias: Alias, mountAccessor: string, name: string): boolean {
  return alias.mountAccessor === mountAccessor && alias.name.toLowerCase() === name.toLowerCase();
}
