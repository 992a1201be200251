import { approleRoutes } from "../approle/approle-routes.ts";
import { identityRoutes } from "../identity/identity-routes.ts";
import { kvRoutes } from "../kv/kv-routes.ts";
import { sysRoutes } from "../sys/sys-routes.ts";
import { tokenRoutes } from "../token/token-routes.ts";
import type { MountRecord, MountTable } from "./mount-table.ts";
import type { Route } from "./route.ts";
import type { VaultState } from "./vault-state.ts";

/** RouteTable gives the routes of each mount, made once. */
export class RouteTable {
  readonly #state: VaultState;
  readonly #seal: () => void;
  readonly #made = new Map<string, Route[]>();

  constructor(state: VaultState, seal: () => void) {
    this.#state = state;
    this.#seal = seal;
  }

  routesOf(mount: MountRecord): Route[] {
    const known = this.#made.get(mount.uuid);
    if (known) return known;
    const routes = this.#make(mount);
    this.#made.set(mount.uuid, routes);
    return routes;
  }

  #make(mount: MountRecord): Route[] {
    switch (mount.type) {
      case "system":
        return sysRoutes(this.#state, this.#seal);
      case "identity":
        return identityRoutes(this.#state);
      case "token":
        return tokenRoutes(this.#state);
      case "approle":
        return approleRoutes(this.#state);
      case "kv":
        return kvRoutes(this.#state.store, mount);
      default:
        throw new Error(`no routes for a mount of type ${mount.type}`);
    }
  }
}

/** findMount finds the mount that a path is below, and the rest of the path. */
export function findMount(
  mounts: MountTable,
  path: string,
): { record: MountRecord; rest: string } | undefined {
  const isAuth = path.startsWith("auth/");
  const below = isAuth ? path.slice("auth/".length) : path;
  const record = mounts.list(isAuth ? "auth" : "secret").find((mount) => `${below}/`.startsWith(mount.path));
  return record && { record, rest: below.slice(record.path.length) };
}
