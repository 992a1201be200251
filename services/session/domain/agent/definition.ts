/** Most bytes that a definition, or a session's own agent, may have as JSON. */
export const MAX_DEFINITION_BYTES = 1 << 20;

/** What may be done without asking. */
export interface Policy {
  type: "always_allow" | "always_ask" | "auto";
}

/** Defaults of a toolset. */
export interface DefaultConfig {
  enabled: boolean;
  permission_policy: Policy;
}

/** The model an agent uses, resolved. */
export interface Model {
  id: string;
  effort: { type: string };
  speed: string;
  inference_geo?: string;
}

/** An entry of `tools`, resolved. */
export type Tool = { type: string } & Record<string, unknown>;

/** An MCP server of an agent. */
export interface McpServer {
  type: "url";
  name: string;
  url: string;
}

/**
 * An agent's definition, resolved: the object that the REST API shows, without id, version and times. Key names are
 * the API's.
 */
export interface Definition {
  type: "agent";
  name: string;
  description: string | null;
  model: Model;
  system: string | null;
  tools: Tool[];
  mcp_servers: McpServer[];
  skills: [];
  multiagent: null;
  execution_identity: { type: "service_account" };
  metadata: Record<string, string>;
}
