import type { Caller } from "../token/caller.ts";
import type { Operation, VaultAnswer, VaultRequest } from "./request.ts";

/** Call is what a handler is given: the request, who sent it, and the named parts of its path. */
export interface Call {
  readonly request: VaultRequest;
  readonly data: Readonly<Record<string, unknown>>;
  /** Absent only on routes that are open to everyone. */
  readonly caller: Caller | undefined;
  readonly params: Readonly<Record<string, string>>;
}

export type Handler = (call: Call) => VaultAnswer | undefined;

/** Route is one shape of path below a mount. */
export interface Route {
  /** Path below the mount; `:name` is one segment, `*name` the rest. */
  readonly path: string;
  readonly handlers: Partial<Record<Operation, Handler>>;
  /** Tells a create from an update, where policies care for the difference. */
  readonly exists?: (params: Readonly<Record<string, string>>) => boolean;
  /** Open to everyone, like a login. */
  readonly isOpen?: boolean;
  /** Needs the `sudo` capability besides the operation's. */
  readonly needsSudo?: boolean;
}

/** matchRoute finds the first route that fits a path below its mount, with the path's parts. */
export function matchRoute(
  routes: readonly Route[],
  path: string,
): { route: Route; params: Record<string, string> } | undefined {
  for (const route of routes) {
    const params = matchPath(route.path, path);
    if (params) return { route, params };
  }
  return undefined;
}

function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.replace(/\/$/, "").split("/");
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith("*")) {
      params[part.slice(1)] = given.slice(index).join("/");
      return params;
    }
    const value = given[index];
    if (value === undefined) return undefined;
    if (part.startsWith(":")) {
      if (value === "") return undefined;
      params[part.slice(1)] = value;
    } else if (part !== value) return undefined;
  }
  return given.length === wanted.length ? params : undefined;
}
