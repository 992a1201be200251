import { Violations } from "../../../common/errors/violations.ts";
import { parseJson, Shape } from "../json-shape.ts";
import type { Definition } from "./definition.ts";
import { resolveMcpServers, resolveTools } from "./resolve-tools.ts";

/** An agent as a session keeps it. */
export type SessionAgent = Omit<Definition, "metadata"> & { id: string; version: number };

/** Lists that replace the agent's, as JSON; absent = kept. */
export interface AgentLists {
  readonly tools: Uint8Array | undefined;
  readonly mcpServers: Uint8Array | undefined;
}

/**
 * patchSessionAgent replaces the tools or MCP servers of a session's own agent, resolved and checked as an agent's are,
 * or throws naming what is wrong.
 */
export function patchSessionAgent(agent: SessionAgent, lists: AgentLists): SessionAgent {
  const violations = new Violations();
  const shape = new Shape(violations);
  const servers = resolveMcpServers(
    shape,
    "agent.mcp_servers",
    listOf(violations, "agent_mcp_servers_json", lists.mcpServers) ?? agent.mcp_servers,
  );
  const tools = resolveTools(
    shape,
    "agent.tools",
    listOf(violations, "agent_tools_json", lists.tools) ?? agent.tools,
    servers,
  );
  violations.throwIfAny();
  return { ...agent, tools, mcp_servers: servers };
}

function listOf(violations: Violations, field: string, json: Uint8Array | undefined): unknown {
  if (!json) return undefined;
  const list = parseJson(json);
  if (Array.isArray(list)) return list;
  violations.add(field, "must be a JSON array in UTF-8");
  return [];
}
