import type { Alias, Entity } from "./entity.ts";

/** describeEntity shows an entity as Vault does. */
export function describeEntity(entity: Entity): Record<string, unknown> {
  return {
    aliases: entity.aliases.map(describeAlias),
    creation_time: entity.createdAt,
    direct_group_ids: [],
    disabled: entity.isDisabled,
    group_ids: [],
    id: entity.id,
    inherited_group_ids: [],
    last_update_time: entity.updatedAt,
    merged_entity_ids: null,
    metadata: Object.keys(entity.metadata).length > 0 ? entity.metadata : null,
    name: entity.name,
    namespace_id: "root",
    policies: entity.policies,
  };

  function describeAlias(alias: Alias): Record<string, unknown> {
    return { canonical_id: entity.id, ...aliasFields(alias) };
  }
}

/** aliasFields shows an alias without its owner. */
export function aliasFields(alias: Alias): Record<string, unknown> {
  return {
    creation_time: alias.createdAt,
    custom_metadata: {},
    id: alias.id,
    last_update_time: alias.updatedAt,
    local: false,
    merged_from_canonical_ids: null,
    metadata: null,
    mount_accessor: alias.mountAccessor,
    mount_path: alias.mountPath,
    mount_type: alias.mountType,
    name: alias.name,
  };
}
