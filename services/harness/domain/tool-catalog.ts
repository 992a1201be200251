import { type Policy, settingOf } from "./agent-config.ts";
import { BUILT_IN_TOOLS, type OfferedTool } from "./built-in-tools.ts";
import { contextOf } from "./context/context-of.ts";
import { sanitizeSchema } from "./sanitize-schema.ts";
import { SESSION_LOG, SESSION_LOG_TOOL } from "./session-log-tool.ts";
import type { SessionState } from "./session-state.ts";

/** What a name that the model used stands for. */
export type KnownTool =
  | { kind: "built-in"; name: string; policy: Policy }
  | { kind: "mcp"; serverName: string; name: string; policy: Policy }
  | { kind: "custom"; name: string };

/** The tools of a session as they are now: what the model is offered, and what each name means. */
export interface ToolCatalog {
  offered: readonly OfferedTool[];
  byModelName: ReadonlyMap<string, KnownTool>;
}

/**
 * Builds the catalog from the log's state: enabled built-in tools, then MCP tools in the agent's order of servers and
 * the server's order of tools, then custom ones. A name that is taken already is not offered again. The last one is
 * session_log, where the context strategy may leave something out: off only when the agent says so by its name.
 */
export function toolCatalog(state: SessionState): ToolCatalog {
  const offered: OfferedTool[] = [];
  const byModelName = new Map<string, KnownTool>();
  const add = (tool: OfferedTool, known: KnownTool): void => {
    if (byModelName.has(tool.name)) return;
    byModelName.set(tool.name, known);
    offered.push(tool);
  };
  const agent = state.agent;
  if (!agent) return { offered, byModelName };

  for (const tool of BUILT_IN_TOOLS) {
    const setting = agent.builtIn ? settingOf(agent.builtIn, tool.name) : undefined;
    if (setting?.isEnabled) add(tool, { kind: "built-in", name: tool.name, policy: setting.policy });
  }
  for (const [serverName, toolset] of agent.mcp) {
    for (const tool of state.mcpTools.get(serverName) ?? []) {
      const setting = settingOf(toolset, tool.name);
      if (!setting.isEnabled) continue;
      const { schema, dropped } = sanitizeSchema(tool.inputSchemaJson);
      const note = dropped.length > 0 ? `\n\n(The input schema is simplified: ${dropped.join(", ")}.)` : "";
      add(
        { name: tool.modelName, description: `${tool.description}${note}`, inputSchema: schema },
        { kind: "mcp", serverName, name: tool.name, policy: setting.policy },
      );
    }
  }
  for (const tool of agent.custom) {
    add(
      { name: tool.name, description: tool.description, inputSchema: tool.inputSchema },
      { kind: "custom", name: tool.name },
    );
  }
  const log = agent.builtIn?.byName.get(SESSION_LOG) ?? { isEnabled: true, policy: "always_allow" };
  if (contextOf(state)?.strategy.mayDrop && log.isEnabled) {
    add(SESSION_LOG_TOOL, { kind: "built-in", name: SESSION_LOG, policy: log.policy });
  }
  return { offered, byModelName };
}
