const MCP = {
  type: "mcp_toolset",
  mcp_server_name: "counter",
  default_config: { enabled: true, permission_policy: { type: "always_allow" } },
};

/** The agents of the canonical sessions, by what they may do. */
export const AGENTS = {
  /** Everything, unasked. */
  free: [{ type: "agent_toolset_20260401" }, MCP],
  /** Nothing of the outside world: the cheapest. */
  bare: [],
  /** Has a small window, and summarises. */
  forgetful: [{ type: "agent_toolset_20260401" }],
  /** Asks before each command, and has a tool that its client runs. */
  careful: [
    {
      type: "agent_toolset_20260401",
      default_config: { enabled: true, permission_policy: { type: "always_ask" } },
    },
    {
      type: "custom",
      name: "ask_a_person",
      description: "Asks a person.",
      input_schema: { type: "object", properties: { question: { type: "string" } } },
    },
  ],
} satisfies Record<string, object[]>;

/** Settings of an agent beyond its tools. */
export const METADATA: Partial<Record<AgentName, Record<string, string>>> = {
  forgetful: {
    "ganglion.context_strategy": "compaction/1",
    "ganglion.context_options": JSON.stringify({ compact_at_tokens: 6000, keep_tokens: 500 }),
  },
};

/** Name of an agent. */
export type AgentName = keyof typeof AGENTS;
