import { Violations } from "../../../common/errors/violations.ts";
import { isObject, type Json, mergeMetadata, Shape } from "../json-shape.ts";

const KEYS = ["name", "config", "description", "metadata", "scope"];
const MANAGERS = ["apt", "cargo", "gem", "go", "npm", "pip"] as const;
const HOST = /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/** An environment, resolved. */
export interface EnvironmentSpec {
  name: string;
  description: string | null;
  config: Json;
  metadata: Record<string, string>;
}

/** resolveEnvironment makes a complete environment of the body of "create environment". */
export function resolveEnvironment(field: string, body: Json): EnvironmentSpec {
  return resolve(field, body, body);
}

/** patchEnvironment applies the body of "update environment": omitted keys and a null name or config are kept. */
export function patchEnvironment(field: string, current: EnvironmentSpec, patch: Json): EnvironmentSpec {
  const { config } = patch;
  const merged: Json = {
    name: patch.name ?? current.name,
    description: "description" in patch ? patch.description : current.description,
    config: isObject(config) ? { ...current.config, ...config } : (config ?? current.config),
    metadata: mergeMetadata(current.metadata, patch.metadata, (value) => value === null || value === ""),
    scope: patch.scope,
  };
  return resolve(field, patch, merged);
}

function resolve(field: string, given: Json, body: Json): EnvironmentSpec {
  const violations = new Violations();
  const shape = new Shape(violations);
  shape.object(field, given, KEYS);
  const { description } = body;
  shape.unsupported(`${field}.scope`, body.scope);
  const spec: EnvironmentSpec = {
    name: shape.string(`${field}.name`, body.name, { min: 1, max: 256 }) ?? "",
    description:
      description === undefined || description === null
        ? null
        : (shape.string(`${field}.description`, description, { max: 2048 }) ?? null),
    config: resolveConfig(shape, `${field}.config`, body.config),
    metadata: shape.metadata(`${field}.metadata`, body.metadata),
  };
  violations.throwIfAny();
  return spec;
}

function resolveConfig(shape: Shape, path: string, value: unknown): Json {
  const given = value === undefined || value === null ? { type: "cloud" } : value;
  const config = shape.object(path, given, ["type", "networking", "packages"]) ?? {};
  if (config.type === "self_hosted") shape.wrong(`${path}.type`, "self_hosted is not supported yet");
  else shape.oneOf(`${path}.type`, config.type, ["cloud"]);
  return {
    type: "cloud",
    networking: resolveNetworking(shape, `${path}.networking`, config.networking),
    packages: resolvePackages(shape, `${path}.packages`, config.packages),
  };
}

// Bound to each session at mcp-proxy, whose egress door goes by it within the operator's bound.
function resolveNetworking(shape: Shape, path: string, value: unknown): Json {
  if (value === undefined || value === null) return { type: "unrestricted" };
  const keys = ["type", "allowed_hosts", "allow_mcp_servers", "allow_package_managers"];
  if (isObject(value) && value.type === "unrestricted") {
    shape.object(path, value, ["type"]);
    return { type: "unrestricted" };
  }
  const limited = shape.object(path, value, keys);
  if (!limited || !shape.oneOf(`${path}.type`, limited.type, ["unrestricted", "limited"])) return {};
  const hosts = shape.array(`${path}.allowed_hosts`, limited.allowed_hosts, 256).map((entry, index) => {
    const at = `${path}.allowed_hosts[${index}]`;
    const host = shape.string(at, entry, { min: 1, max: 253 }) ?? "";
    if (host !== "" && !HOST.test(host)) shape.wrong(at, "must be a host name or *. and a host name");
    return host;
  });
  return {
    type: "limited",
    allowed_hosts: hosts,
    allow_mcp_servers: shape.boolean(`${path}.allow_mcp_servers`, limited.allow_mcp_servers, false),
    allow_package_managers: shape.boolean(
      `${path}.allow_package_managers`,
      limited.allow_package_managers,
      false,
    ),
  };
}

// Installing needs a network that hands do not have.
function resolvePackages(shape: Shape, path: string, value: unknown): Json {
  const packages: Json = { type: "packages" };
  for (const manager of MANAGERS) packages[manager] = [];
  if (value === undefined || value === null) return packages;
  const given = shape.object(path, value, ["type", ...MANAGERS]);
  if (given?.type !== undefined && given.type !== "packages") shape.wrong(`${path}.type`, "must be packages");
  for (const manager of MANAGERS) shape.unsupported(`${path}.${manager}`, given?.[manager]);
  return packages;
}
