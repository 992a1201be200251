import type { MountRecord } from "../core/mount-table.ts";
import { stringMap, text } from "../core/request.ts";
import type { Handler, Route } from "../core/route.ts";
import { badRequest } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";

/** mountRoutes are `sys/mounts` and `sys/auth`. */
export function mountRoutes(state: VaultState): Route[] {
  const all = (kind: MountRecord["kind"]): Handler => {
    return () => ({
      repeatsData: true,
      data: Object.fromEntries(state.mounts.list(kind).map((mount) => [mount.path, describe(mount)])),
    });
  };
  const one = (kind: MountRecord["kind"], missing: (path: string) => string): Handler => {
    return ({ params }) => {
      const path = `${params.path}/`;
      const mount = state.mounts.get(kind, path);
      if (!mount) throw badRequest(missing(path));
      return { repeatsData: true, data: describe(mount) };
    };
  };
  const enableSecret: Handler = ({ data, params }) => {
    const options = stringMap(data, "options") ?? {};
    const type = text(data, "type");
    const isVersioned = type === "kv-v2" || (type === "kv" && options.version === "2");
    if (!isVersioned) throw badRequest("only KV version 2 can be mounted in the development vault");
    state.mounts.add({
      path: `${params.path}/`,
      kind: "secret",
      type: "kv",
      description: text(data, "description"),
      options: { version: "2" },
    });
    return undefined;
  };
  const enableAuth: Handler = ({ data, params }) => {
    if (text(data, "type") !== "approle" || params.path !== "approle") {
      throw badRequest("only approle, at approle/, can be enabled in the development vault");
    }
    state.mounts.add({
      path: "approle/",
      kind: "auth",
      type: "approle",
      description: text(data, "description"),
      options: {},
    });
    return undefined;
  };
  return [
    { path: "mounts", handlers: { read: all("secret") } },
    {
      path: "mounts/*path",
      handlers: {
        read: one("secret", (path) => `No secret engine mount at ${path}`),
        update: enableSecret,
      },
    },
    { path: "auth", handlers: { read: all("auth") } },
    {
      path: "auth/*path",
      needsSudo: true,
      handlers: { read: one("auth", (path) => `No auth engine at ${path}`), update: enableAuth },
    },
  ];
}

function describe(mount: MountRecord): Record<string, unknown> {
  return {
    accessor: mount.accessor,
    config: {
      default_lease_ttl: 0,
      force_no_cache: false,
      max_lease_ttl: 0,
      ...(mount.kind === "auth" ? { token_type: "default-service" } : {}),
    },
    description: mount.description,
    external_entropy_access: false,
    local: false,
    options: mount.options,
    seal_wrap: false,
    type: mount.type,
    uuid: mount.uuid,
  };
}
