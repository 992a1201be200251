import type { WrittenEvent } from "../../../golden/load-log.ts";

/** An event of a log that is written down; whoever loads it gives it an id where it matters to nobody. */
export type Written = Omit<WrittenEvent, "id"> & { id?: string };

/** The tools of the MCP server "books" are known. */
export const resolved: Written = {
  type: "ganglion.mcp_tools_resolved",
  body: { mcpServerName: "books", tools: [{ name: "find", modelName: "mcp__books__find" }] },
};

/** A brain took the session. */
export const lease: Written = { type: "ganglion.lease_acquired", body: { owner: "spiffe://x", epoch: "1" } };

/** A turn began. */
export const running: Written = { type: "session.status_running", body: {} };

/** Somebody interrupts. */
export const interrupt: Written = { type: "user.interrupt", body: {} };

/** There is a hand. */
export const hand: Written = {
  type: "ganglion.hand_provisioned",
  body: { handId: "hand_0", sandboxAddr: "127.0.0.1:1", driver: "fake" },
};

/** A model request was made. */
export const span = (id: string, consumedPosition = "2", attempt = 1): Written => ({
  id,
  type: "span.model_request_start",
  body: { consumedPosition, model: "claude-test", contextStrategy: "full/1", attempt },
});

/** A model request ended well. */
export const end = (spanId: string, providerStopReason = "tool_use"): Written => ({
  type: "span.model_request_end",
  body: { modelRequestStartId: spanId, providerStopReason, durationMs: "5" },
});

/** A model request failed. */
export const failedEnd = (spanId: string, errorReason: string): Written => ({
  type: "span.model_request_end",
  body: { modelRequestStartId: spanId, isError: true, errorReason, durationMs: "5" },
});

/** A user said something. */
export const said = (text: string): Written => ({
  type: "user.message",
  body: { content: [{ type: "text", text }] },
});

/** The model called a tool of the hand. */
export function use(id: string, spanId: string, index: number, more: Record<string, unknown> = {}): Written {
  const input = { command: id };
  return {
    id,
    type: "agent.tool_use",
    body: {
      ...{
        block: { type: "tool_use", id, name: "bash", input },
        modelRequestStartId: spanId,
        blockIndex: index,
      },
      ...{ providerCallId: id, name: "bash", inputJson: input, permission: "PERMISSION_ALLOW" },
      ...{ policy: "always_allow", ...more },
    },
  };
}

/** What makes of a call one that has to be confirmed. */
export const asked = { permission: "PERMISSION_ASK", policy: "always_ask" };

/** The model called an MCP tool. */
export const mcpUse = (id: string, spanId: string): Written => ({
  id,
  type: "agent.mcp_tool_use",
  body: { ...use(id, spanId, 0).body, mcpServerName: "books", name: "find" },
});

/** The model called a client's tool. */
export function customUse(id: string, spanId: string): Written {
  const { permission: _, policy: __, ...body } = use(id, spanId, 0).body;
  return { id, type: "agent.custom_tool_use", body: { ...body, name: "ask_boss" } };
}

/** A call of a tool of the hand ended. */
export const result = (toolUseId: string): Written => ({
  type: "agent.tool_result",
  body: { toolUseId, content: [{ type: "text", text: "r" }], outcome: "TOOL_OUTCOME_COMPLETED" },
});

/** The session waits for its user. */
export const waits = (...eventIds: string[]): Written => ({
  type: "session.status_idle",
  body: { stopReason: { type: "TYPE_REQUIRES_ACTION", eventIds } },
});

/** The user allows a call. */
export const allow = (toolUseId: string): Written => ({
  type: "user.tool_confirmation",
  body: { toolUseId, result: "RESULT_ALLOW" },
});
