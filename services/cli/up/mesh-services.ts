import type { ServiceUserName } from "./service-users.ts";

/** A process of the mesh that is one of our services. */
export interface ServiceInstance {
  readonly name: string;
  /** Service in the SPIFFE id, and the folder below services/. */
  readonly service: "session" | "gateway" | "sandbox" | "mcp-proxy" | "harness";
  readonly user: ServiceUserName;
  /** Common name of its certificate: the database role where it has one. */
  readonly cn: string;
  /** Stopped in ascending order. */
  readonly stopOrder: number;
}

/** Most session replicas that one machine runs: each has its own connections to PostgreSQL. */
export const MAX_SESSION_REPLICAS = 8;

const OTHERS: readonly ServiceInstance[] = [
  { name: "mcp-proxy-1", service: "mcp-proxy", user: "proxy", cn: "ganglion_proxy", stopOrder: 3 },
  { name: "sandbox-1", service: "sandbox", user: "sandbox", cn: "sandbox", stopOrder: 2 },
  { name: "harness-1", service: "harness", user: "harness", cn: "harness", stopOrder: 1 },
  { name: "harness-2", service: "harness", user: "harness", cn: "harness", stopOrder: 1 },
  { name: "gateway-1", service: "gateway", user: "gateway", cn: "gateway", stopOrder: 0 },
];

/** servicesOf lists the services of a mesh on one machine. */
export function servicesOf(sessionReplicas = 1): ServiceInstance[] {
  const session = { service: "session", user: "session", cn: "ganglion_session", stopOrder: 3 } as const;
  const replicas = Array.from({ length: sessionReplicas }, (_, n) => ({
    name: `session-${n + 1}`,
    ...session,
  }));
  return [...replicas, ...OTHERS];
}

/** portNames lists the ports that `up` chooses itself. */
export function portNames(services: readonly ServiceInstance[]): string[] {
  const others = ["postgres", "vault", "scripted-model", "mcp-proxy-http", "mcp-proxy-egress"];
  return [...others, ...services.flatMap(({ name }) => [name, `${name}-admin`])];
}

/**
 * The mesh's own ports as host:port, for mcp-proxy to keep sessions from them (case A037). The scripted model is not
 * among them: it is a destination.
 */
export function ownEndpoints(ports: Readonly<Record<string, number>>): string[] {
  return Object.entries(ports).flatMap(([name, port]) =>
    name === "scripted-model" ? [] : [`127.0.0.1:${port}`],
  );
}

/** Settings of a service beyond those that all have. `at` gives host:port of a port's name. */
export interface EnvironmentContext {
  readonly services: readonly ServiceInstance[];
  readonly at: (port: string) => string;
  readonly postgres: Record<string, string>;
  readonly scriptedModelUrl: string | undefined;
  readonly allowHttpHosts: string;
  readonly forbiddenEndpoints: readonly string[];
  /** What this service alone is given: files of the operator, folders of its own. */
  readonly own: Record<string, string>;
}

/** serviceEnvironment says what a service gets to know of the others. */
export function serviceEnvironment(
  service: ServiceInstance["service"],
  { services, at, postgres, scriptedModelUrl, allowHttpHosts, forbiddenEndpoints, own }: EnvironmentContext,
): Record<string, string> {
  const allOf = (wanted: ServiceInstance["service"]) =>
    services
      .filter((instance) => instance.service === wanted)
      .map(({ name }) => at(name))
      .join(",");
  const addresses = {
    GANGLION_SESSION_ADDR: allOf("session"),
    GANGLION_SANDBOX_ADDR: at("sandbox-1"),
    GANGLION_PROXY_ADDR: at("mcp-proxy-1"),
  };
  switch (service) {
    case "session":
      return { ...postgres, ...own, GANGLION_PROXY_ADDR: addresses.GANGLION_PROXY_ADDR };
    case "mcp-proxy":
      return {
        ...postgres,
        GANGLION_SESSION_ADDR: addresses.GANGLION_SESSION_ADDR,
        GANGLION_PROXY_HTTP_LISTEN: at("mcp-proxy-http"),
        GANGLION_PROXY_EGRESS_LISTEN: at("mcp-proxy-egress"),
        GANGLION_PROXY_FORBIDDEN_ENDPOINTS: forbiddenEndpoints.join(","),
        ...own,
        ...(scriptedModelUrl ? { GANGLION_SCRIPTED_MODEL_URL: scriptedModelUrl } : {}),
        ...(allowHttpHosts ? { GANGLION_PROXY_ALLOW_HTTP_HOSTS: allowHttpHosts } : {}),
      };
    case "sandbox":
      return {
        GANGLION_SESSION_ADDR: addresses.GANGLION_SESSION_ADDR,
        GANGLION_PROXY_ADDR: addresses.GANGLION_PROXY_ADDR,
        GANGLION_PROXY_EGRESS_ADDR: at("mcp-proxy-egress"),
        ...own,
      };
    case "harness":
      return { ...addresses, ...own, GANGLION_PROXY_HTTP_ADDR: at("mcp-proxy-http") };
    case "gateway":
      return {
        ...addresses,
        ...own,
        GANGLION_HARNESS_ADDRS: allOf("harness"),
        GANGLION_REST_LISTEN: at("rest"),
        GANGLION_PUBLIC_LISTEN: at("grpc"),
      };
  }
}
