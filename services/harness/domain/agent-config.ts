/** How a tool call is decided on before it runs. */
export type Policy = "always_allow" | "always_ask" | "auto";

/** Settings of one tool of a toolset. */
export interface ToolSetting {
  isEnabled: boolean;
  policy: Policy;
}

/** A toolset as the agent configures it: a default and exceptions by tool name. */
export interface ToolsetConfig {
  byDefault: ToolSetting;
  byName: ReadonlyMap<string, ToolSetting>;
}

/** A tool that the client runs. */
export interface CustomTool {
  name: string;
  description: string;
  inputSchema: unknown;
}

/** The part of an agent's definition that a brain acts on. */
export interface AgentConfig {
  model: { id: string; effort: string | null; speed: string | null; inferenceGeo: string | null };
  system: string;
  /** Absent when the agent has no built-in tools. */
  builtIn: ToolsetConfig | null;
  /** By MCP server, in the agent's order; only servers that the agent also declares. */
  mcp: ReadonlyMap<string, ToolsetConfig>;
  custom: readonly CustomTool[];
}

/**
 * Reads the agent's definition as the log has it. What is missing or malformed is treated as not granted: an unknown
 * tool entry offers nothing, an unknown policy asks.
 */
export function parseAgentConfig(json: Uint8Array): AgentConfig {
  const agent = asObject(parse(json));
  const tools = asArray(agent.tools).map(asObject);
  const builtIn = tools.find((tool) => tool.type === "agent_toolset_20260401");
  const servers = new Set(asArray(agent.mcp_servers).map((server) => text(asObject(server).name)));
  const mcp = new Map<string, ToolsetConfig>();
  for (const tool of tools) {
    const server = text(tool.mcp_server_name);
    if (tool.type === "mcp_toolset" && servers.has(server)) mcp.set(server, parseToolset(tool, "always_ask"));
  }
  return {
    model: parseModel(agent.model),
    system: text(agent.system),
    builtIn: builtIn ? parseToolset(builtIn, "always_allow") : null,
    mcp,
    custom: tools
      .filter((tool) => tool.type === "custom" && text(tool.name) !== "")
      .map((tool) => ({
        name: text(tool.name),
        description: text(tool.description),
        inputSchema: tool.input_schema,
      })),
  };
}

/** True when the environment leaves built-in tools to the client's own hands. */
export function isSelfHosted(environmentJson: Uint8Array): boolean {
  const environment = asObject(parse(environmentJson));
  return environment.type === "self_hosted" || asObject(environment.config).type === "self_hosted";
}

/** Setting of one tool. */
export function settingOf(toolset: ToolsetConfig, name: string): ToolSetting {
  return toolset.byName.get(name) ?? toolset.byDefault;
}

function parseModel(model: unknown): AgentConfig["model"] {
  if (typeof model === "string") return { id: model, effort: null, speed: null, inferenceGeo: null };
  const { id, effort, speed, inference_geo: geo } = asObject(model);
  const level = typeof effort === "string" ? effort : text(asObject(effort).type);
  return { id: text(id), effort: level || null, speed: text(speed) || null, inferenceGeo: text(geo) || null };
}

function parseToolset(tool: Record<string, unknown>, fallback: Policy): ToolsetConfig {
  const byDefault = parseSetting(asObject(tool.default_config), { isEnabled: true, policy: fallback });
  const byName = new Map<string, ToolSetting>();
  for (const config of asArray(tool.configs).map(asObject)) {
    byName.set(text(config.name), parseSetting(config, byDefault));
  }
  return { byDefault, byName };
}

function parseSetting(config: Record<string, unknown>, byDefault: ToolSetting): ToolSetting {
  return {
    isEnabled: typeof config.enabled === "boolean" ? config.enabled : byDefault.isEnabled,
    policy: parsePolicy(config.permission_policy, byDefault.policy),
  };
}

function parsePolicy(policy: unknown, fallback: Policy): Policy {
  if (policy === undefined || policy === null) return fallback;
  const type = typeof policy === "string" ? policy : text(asObject(policy).type);
  return type === "always_allow" || type === "auto" ? type : "always_ask";
}

function parse(json: Uint8Array): unknown {
  if (json.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder().decode(json));
  } catch {
    return {};
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function asArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
