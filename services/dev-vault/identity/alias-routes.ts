import { text } from "../core/request.ts";
import type { Handler, Route } from "../core/route.ts";
import { badRequest, notFound } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import { aliasFields } from "./describe-entity.ts";
import type { Alias, Entity } from "./entity.ts";

/** aliasRoutes are the routes of `identity/entity-alias`. */
export function aliasRoutes(state: VaultState): Route[] {
  const identity = state.identity;
  const find = (id: string): { entity: Entity; alias: Alias } | undefined => {
    for (const entity of identity.list()) {
      const alias = entity.aliases.find((candidate) => candidate.id === id);
      if (alias) return { entity, alias };
    }
    return undefined;
  };
  const write: Handler = ({ data }) => {
    const name = text(data, "name");
    const accessor = text(data, "mount_accessor");
    const canonicalId = text(data, "canonical_id") || text(data, "entity_id");
    if (name === "") throw badRequest("'name' must be provided");
    if (accessor === "") throw badRequest("'mount_accessor' must be provided");
    if (state.mounts.findByAccessor(accessor)?.kind !== "auth") {
      throw badRequest(`invalid mount accessor "${accessor}"`);
    }
    const owner = canonicalId === "" ? identity.findByAlias(accessor, name) : identity.get(canonicalId);
    if (canonicalId !== "" && !owner) throw badRequest("invalid canonical ID");
    const entity = owner ?? identity.write(undefined, {}).entity;
    const { alias, isNew } = identity.putAlias(entity, accessor, name);
    return isNew ? { data: { canonical_id: entity.id, id: alias.id } } : undefined;
  };

  return [
    { path: "entity-alias", handlers: { update: write } },
    {
      path: "entity-alias/id",
      handlers: {
        list: () => {
          const keys = identity.list().flatMap((entity) => entity.aliases.map((alias) => alias.id));
          if (keys.length === 0) throw notFound();
          return { data: { keys } };
        },
      },
    },
    {
      path: "entity-alias/id/:id",
      handlers: {
        read: ({ params }) => {
          const found = find(params.id as string);
          if (!found) throw notFound();
          return { data: { canonical_id: found.entity.id, ...aliasFields(found.alias) } };
        },
        delete: ({ params }) => {
          const found = find(params.id as string);
          if (found) identity.removeAlias(found.entity, found.alias.id);
          return undefined;
        },
      },
    },
  ];
}
