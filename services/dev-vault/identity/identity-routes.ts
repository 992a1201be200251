import { flag, names, stringMap, text } from "../core/request.ts";
import type { Handler, Route } from "../core/route.ts";
import { badRequest, notFound } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import { aliasRoutes } from "./alias-routes.ts";
import { describeEntity } from "./describe-entity.ts";
import type { Entity } from "./entity.ts";

/** identityRoutes are the routes of `identity/`. */
export function identityRoutes(state: VaultState): Route[] {
  const identity = state.identity;
  const write = (existing: Entity | undefined, name: string, data: Parameters<Handler>[0]["data"]) => {
    const metadata = stringMap(data, "metadata");
    const policies = names(data, "policies");
    const isDisabled = flag(data, "disabled");
    const { entity, isNew } = identity.write(existing, {
      ...(name === "" ? {} : { name }),
      ...(metadata ? { metadata } : {}),
      ...(policies ? { policies } : {}),
      ...(isDisabled === undefined ? {} : { isDisabled }),
    });
    return isNew ? { data: { aliases: null, id: entity.id, name: entity.name } } : undefined;
  };
  const writeAny: Handler = ({ data }) => {
    const id = text(data, "id");
    const name = text(data, "name");
    const existing = id === "" ? (name === "" ? undefined : identity.findByName(name)) : identity.get(id);
    if (id !== "" && !existing) throw badRequest("entity not found from id");
    return write(existing, name, data);
  };
  const named = (path: string, find: (value: string) => Entity | undefined, isName: boolean): Route => {
    const change: Handler = ({ params, data }) => {
      const value = params.value as string;
      const existing = find(value);
      if (!existing && !isName) throw badRequest("entity not found from id");
      return write(existing, isName ? value : text(data, "name"), data);
    };
    return {
      path: `${path}/:value`,
      exists: (params) => find(params.value as string) !== undefined,
      handlers: {
        create: change,
        update: change,
        read: ({ params }) => {
          const entity = find(params.value as string);
          if (!entity) throw notFound();
          return { data: describeEntity(entity) };
        },
        delete: ({ params }) => {
          const entity = find(params.value as string);
          if (entity) identity.delete(entity.id);
          return undefined;
        },
      },
    };
  };
  const list = (path: string, key: (entity: Entity) => string): Route => ({
    path,
    handlers: {
      list: () => {
        const keys = identity.list().map(key);
        if (keys.length === 0) throw notFound();
        return { data: { keys } };
      },
    },
  });

  return [
    { path: "entity", handlers: { update: writeAny } },
    named("entity/id", (id) => identity.get(id), false),
    named("entity/name", (name) => identity.findByName(name), true),
    list("entity/id", (entity) => entity.id),
    list("entity/name", (entity) => entity.name),
    {
      path: "lookup/entity",
      handlers: {
        update: ({ data }) => {
          const entity = lookUp(identity, data);
          return entity ? { data: describeEntity(entity) } : undefined;
        },
      },
    },
    ...aliasRoutes(state),
  ];
}

function lookUp(
  identity: VaultState["identity"],
  data: Readonly<Record<string, unknown>>,
): Entity | undefined {
  const [id, name] = [text(data, "id"), text(data, "name")];
  const [alias, mount] = [text(data, "alias_name"), text(data, "alias_mount_accessor")];
  if (id !== "") return identity.get(id);
  if (name !== "") return identity.findByName(name);
  if (alias !== "" && mount !== "") return identity.findByAlias(mount, alias);
  throw badRequest("query parameters not supplied");
}
