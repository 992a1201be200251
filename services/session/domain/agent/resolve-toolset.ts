import type { Json, Shape } from "../json-shape.ts";
import type { DefaultConfig, Policy, Tool } from "./definition.ts";

/** The built-in tools. web_* are never offered to a model yet, but keep their place in the resolved toolset. */
export const BUILT_IN_TOOLS = [
  "bash",
  "edit",
  "read",
  "write",
  "glob",
  "grep",
  "web_fetch",
  "web_search",
] as const;

// Offered by the harness with most context strategies; in a toolset only where an agent sets it.
const CONFIGURABLE = [...BUILT_IN_TOOLS, "session_log"] as const;

type BuiltIn = (typeof CONFIGURABLE)[number];

const COMMON_KEYS = ["name", "type", "enabled", "permission_policy"];
const DOMAIN_KEYS = ["allowed_domains", "blocked_domains"];
const EXTRA_KEYS: Partial<Record<BuiltIn, readonly string[]>> = {
  web_fetch: [...DOMAIN_KEYS, "max_content_tokens", "url_sources"],
  web_search: [...DOMAIN_KEYS, "user_location"],
};

/** resolveAgentToolset fills in all eight tools; the default policy is always_allow. */
export function resolveAgentToolset(shape: Shape, path: string, tool: Json): Tool {
  shape.object(path, tool, ["type", "default_config", "configs"]);
  const byDefault = resolveDefaultConfig(
    shape,
    `${path}.default_config`,
    tool.default_config,
    "always_allow",
  );
  const given = new Map<BuiltIn, { config: Json; path: string }>();
  shape.array(`${path}.configs`, tool.configs, CONFIGURABLE.length).forEach((entry, index) => {
    const at = `${path}.configs[${index}]`;
    const name = shape.oneOf(`${at}.name`, (entry as Json | null)?.name, CONFIGURABLE);
    if (!name) return;
    const config = shape.object(at, entry, [...COMMON_KEYS, ...(EXTRA_KEYS[name] ?? [])]);
    if (!config) return;
    if (config.type !== undefined && config.type !== name) shape.wrong(`${at}.type`, `must be ${name}`);
    if (given.has(name)) shape.wrong(`${at}.name`, "is configured twice");
    given.set(name, { config, path: at });
  });
  return {
    type: "agent_toolset_20260401",
    default_config: byDefault,
    configs: CONFIGURABLE.filter((name) => name !== "session_log" || given.has(name)).map((name) => {
      const { config, path: at } = given.get(name) ?? { config: {}, path };
      return {
        type: name,
        name,
        ...resolveSetting(shape, at, config, byDefault),
        ...webSettings(shape, at, name, config),
      };
    }),
  };
}

/** resolveMcpToolset fills in the defaults of an MCP server's tools; the default policy is always_ask. */
export function resolveMcpToolset(shape: Shape, path: string, tool: Json): Tool {
  shape.object(path, tool, ["type", "mcp_server_name", "default_config", "configs"]);
  const server = shape.string(`${path}.mcp_server_name`, tool.mcp_server_name, { min: 1, max: 255 }) ?? "";
  const byDefault = resolveDefaultConfig(shape, `${path}.default_config`, tool.default_config, "always_ask");
  const names = new Set<string>();
  const configs = shape.array(`${path}.configs`, tool.configs, 256).map((entry, index) => {
    const at = `${path}.configs[${index}]`;
    const config = shape.object(at, entry, ["name", "enabled", "permission_policy"]) ?? {};
    const name = shape.string(`${at}.name`, config.name, { min: 1, max: 128 }) ?? "";
    if (names.has(name)) shape.wrong(`${at}.name`, "is configured twice");
    names.add(name);
    return { name, ...resolveSetting(shape, at, config, byDefault) };
  });
  return { type: "mcp_toolset", mcp_server_name: server, default_config: byDefault, configs };
}

function resolveDefaultConfig(
  shape: Shape,
  path: string,
  value: unknown,
  fallback: Policy["type"],
): DefaultConfig {
  const byDefault: DefaultConfig = { enabled: true, permission_policy: { type: fallback } };
  if (value === undefined || value === null) return byDefault;
  const config = shape.object(path, value, ["enabled", "permission_policy"]);
  return config ? resolveSetting(shape, path, config, byDefault) : byDefault;
}

function resolveSetting(shape: Shape, path: string, config: Json, byDefault: DefaultConfig): DefaultConfig {
  return {
    enabled: shape.boolean(`${path}.enabled`, config.enabled, byDefault.enabled),
    permission_policy: resolvePolicy(shape, `${path}.permission_policy`, config.permission_policy, byDefault),
  };
}

function resolvePolicy(shape: Shape, path: string, value: unknown, byDefault: DefaultConfig): Policy {
  if (value === undefined || value === null) return { ...byDefault.permission_policy };
  const policy = shape.object(path, value, ["type"]);
  if (policy) {
    const type = shape.oneOf(`${path}.type`, policy.type, ["always_allow", "always_ask", "auto"]);
    if (type) return { type };
  }
  return { ...byDefault.permission_policy };
}

function webSettings(shape: Shape, path: string, name: BuiltIn, config: Json): Json {
  if (name !== "web_fetch" && name !== "web_search") return {};
  const settings: Json = {};
  for (const key of DOMAIN_KEYS) {
    if (config[key] === undefined || config[key] === null) continue;
    settings[key] = shape
      .array(`${path}.${key}`, config[key], 64)
      .map((entry, index) => shape.string(`${path}.${key}[${index}]`, entry, { min: 1, max: 253 }));
  }
  if (settings.allowed_domains && settings.blocked_domains) {
    shape.wrong(`${path}.blocked_domains`, "cannot be used together with allowed_domains");
  }
  if (name === "web_search") {
    shape.unsupported(`${path}.user_location`, config.user_location);
    return { ...settings, user_location: null };
  }
  shape.unsupported(`${path}.url_sources`, config.url_sources);
  const tokens = config.max_content_tokens;
  if (tokens !== undefined && tokens !== null) {
    if (!Number.isSafeInteger(tokens) || (tokens as number) < 1) {
      shape.wrong(`${path}.max_content_tokens`, "must be a positive whole number");
    }
    settings.max_content_tokens = tokens;
  }
  return { ...settings, url_sources: null };
}
