import { newId } from "../../../../services/common/ids/new-id.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type { RowMac } from "../../../../services/mcp-proxy/domain/row-mac.ts";
import { encodeNewEvent } from "../../../../services/session/store/event-codec.ts";
import { appendRow } from "./append-row.ts";
import type { ProxyTables } from "./proxy-tables.ts";
import type { SimDatabase } from "./sim-database.ts";

/** The agent of every session: a tool that runs at once, one that asks, two of an MCP server, one of the client's. */
const AGENT = {
  model: { id: "sim" },
  tools: [
    {
      type: "agent_toolset_20260401",
      configs: [{ name: "write", permission_policy: { type: "always_ask" } }],
    },
    {
      type: "mcp_toolset",
      mcp_server_name: "srv",
      default_config: { permission_policy: { type: "always_allow" } },
    },
    { type: "custom", name: "ask_human", description: "Asks.", input_schema: { type: "object" } },
  ],
  mcp_servers: [{ name: "srv", url: "https://mcp.example" }],
};

/** How a session fills the model's window, and with which options. */
export interface SimStrategy {
  name: string;
  options: Record<string, number>;
  /** False when the model may be shown less than all that was said. */
  showsAll: boolean;
}

const SMALL_WINDOW = { window_tokens: 4000, compact_at_tokens: 400, keep_tokens: 120 };

/** All of them, with windows small enough to fill. */
export const STRATEGIES: readonly SimStrategy[] = [
  { name: "full/1", options: {}, showsAll: true },
  { name: "trim/1", options: { keep_turns: 1, step_turns: 1, min_bytes: 10 }, showsAll: true },
  { name: "compaction/1", options: SMALL_WINDOW, showsAll: false },
  { name: "cache-stable/1", options: SMALL_WINDOW, showsAll: false },
];

/** Makes a session, bound and with its first event. */
export function newSession(
  database: SimDatabase,
  tables: ProxyTables,
  mac: RowMac,
  strategy: SimStrategy,
): string {
  const sessionId = newId("sesn");
  const workspaceId = "wrkspc_default";
  database.sessions.set(sessionId, {
    ...{ sessionId, workspaceId, status: "idle", runnable: false, runnableAt: 0 },
    ...{ owner: null, ownerBoot: null, leaseRequest: null, epoch: 0n, events: [], positions: new Map() },
  });
  const binding = {
    ...{ sessionId, workspaceId, vaultIds: [], models: ["sim"] },
    mcpServers: [{ name: "srv", url: "https://mcp.example" }],
    ...{ networking: null, gitRepositories: [] },
  };
  tables.bind(binding, mac.binding(binding));
  const value = {
    agentJson: Buffer.from(JSON.stringify(AGENT)),
    environmentJson: Buffer.from("{}"),
    vaultIds: [],
    workspaceId,
    contextStrategy: strategy.name,
    contextOptionsJson: Buffer.from(JSON.stringify(strategy.options)),
  };
  const event = Event.fromPartial({ body: { $case: "ganglionSessionCreated", value } });
  appendRow(database, {
    ...{ sessionId, scope: null, lease: null, expectedPosition: null },
    actor: { role: 1, subject: "spiffe://ganglion.local/session/session-1" },
    events: [encodeNewEvent(event, "ganglion.session_created")],
  });
  return sessionId;
}
