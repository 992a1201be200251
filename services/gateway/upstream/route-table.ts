import type { Contracts } from "../../common/grpc/contracts.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";

/** A part of the mesh that methods are passed to. */
export type UpstreamName = "session" | "mcp-proxy" | "sandbox" | "harness" | "gateway";

/** What the gateway does with a method. */
export interface Route {
  readonly upstream: UpstreamName;
  readonly service: string;
  readonly method: string;
  /** Who may call it; "anybody" needs no credentials. */
  readonly callers: ReadonlySet<Role> | "anybody";
  /** One side of it or both are a stream, which may stay open. */
  readonly isStream?: boolean;
}

const OWNERS: Readonly<Record<string, UpstreamName>> = {
  "ganglion.session.v1": "session",
  "ganglion.agent.v1": "session",
  "ganglion.vault.v1": "mcp-proxy",
  "ganglion.mcpproxy.v1": "mcp-proxy",
  "ganglion.audit.v1": "mcp-proxy",
  "ganglion.sandbox.v1": "sandbox",
  "ganglion.harness.v1": "harness",
};
const PUBLIC = [Role.ROLE_CLIENT, Role.ROLE_OPERATOR];
const REFLECTION = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/**
 * routesOf says, for each method of the protos by path, which part answers it and for whom. Methods that no outside
 * caller may use are in it too, so that asking for them is refused and not unknown.
 */
export function routesOf(contracts: Contracts): ReadonlyMap<string, Route> {
  const routes = new Map<string, Route>();
  for (const { path, service, method, kind, access } of contracts.methods.values()) {
    const upstream = OWNERS[service.slice(0, service.lastIndexOf("."))];
    if (!upstream) continue;
    const callers = new Set(
      [...(access?.callers ?? [])].filter((role) => PUBLIC.some((one) => one === role)),
    );
    routes.set(path, { upstream, service, method, callers, isStream: kind !== "unary" });
  }
  for (const service of REFLECTION) {
    routes.set(`/${service}/ServerReflectionInfo`, {
      upstream: "gateway",
      service,
      method: "ServerReflectionInfo",
      callers: new Set([Role.ROLE_OPERATOR]),
    });
  }
  for (const method of ["Check", "Watch", "List"]) {
    const service = "grpc.health.v1.Health";
    routes.set(`/${service}/${method}`, { upstream: "gateway", service, method, callers: "anybody" });
  }
  return routes;
}

/** publicServices lists the services with a method that outside callers may use, for reflection and health. */
export function publicServices(routes: ReadonlyMap<string, Route>): string[] {
  const open = [...routes.values()].filter(
    ({ upstream, callers }) => upstream !== "gateway" && callers !== "anybody" && callers.size > 0,
  );
  return [...new Set(open.map(({ service }) => service))];
}
