import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { CallOptions } from "../../common/grpc/create-client.ts";
import type { Call } from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import type { McpCall, McpScope, McpServers } from "../ports/mcp-servers.ts";
import { fromDuration, parentOf, toDuration } from "./call-parts.ts";
import type { McpProxyClient } from "./service-clients.ts";

const ANSWER_MS = 60_000;

/** MCP servers through the credential proxy, over gRPC. */
export function createGrpcMcpServers(client: McpProxyClient): McpServers {
  return {
    async listTools({ serverName, ...scope }) {
      // What cannot be listed now is missing for the whole turn: rather wait for a proxy that comes back.
      const waiting = { ...options(scope, 30_000), waitForReady: true };
      const { tools } = await client.listTools({ mcpServerName: serverName }, waiting);
      return tools;
    },

    async call({ serverName, name, inputJson, key, timeoutMs, ...scope }) {
      const { call } = await client.callTool(
        {
          mcpServerName: serverName,
          name,
          inputJson: Buffer.from(inputJson),
          key,
          timeout: toDuration(timeoutMs),
        },
        options(scope, timeoutMs + ANSWER_MS),
      );
      if (!call) throw new Error("the proxy answered without a call");
      return callOf(call);
    },

    async cancel({ key, ...scope }) {
      await client.cancelCall({ key }, options(scope, 10_000));
    },

    async lookUp({ key, ...scope }) {
      try {
        const { call, isRunning } = await client.getCall({ key }, options(scope, 5000));
        if (isRunning) return { kind: "running" };
        if (!call) throw new Error("the proxy answered without a call");
        return { kind: "known", value: callOf(call) };
      } catch (error) {
        if (GanglionError.is(error, "CALL_NOT_FOUND")) return { kind: "never" };
        throw error;
      }
    },
  };
}

function options({ token, signal, traceparent }: McpScope, timeoutMs: number): CallOptions {
  return {
    metadata: { "ganglion-session-token": token },
    timeoutMs,
    parent: parentOf(signal, traceparent),
  };
}

function callOf(call: Call): McpCall {
  const { outcome, content, structuredContentJson, isError, proxyRequestId, duration } = call;
  return {
    outcome,
    content,
    structuredContentJson,
    isError,
    proxyRequestId,
    durationMs: fromDuration(duration),
  };
}
