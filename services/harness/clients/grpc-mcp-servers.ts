import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { CallOptions } from "../../common/grpc/create-client.ts";
import { Call } from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { pause } from "../driver/pause.ts";
import type { McpCall, McpScope, McpServers } from "../ports/mcp-servers.ts";
import { fromDuration, parentOf, toDuration } from "./call-parts.ts";
import type { McpProxyClient } from "./service-clients.ts";

const ANSWER_MS = 60_000;
/** Most that is read of one result. */
const FULL_BYTES = 32 << 20;
const FULL_TRIES = 3;

/** MCP servers through the credential proxy, over gRPC. */
export function createGrpcMcpServers(client: McpProxyClient): McpServers {
  return {
    async listTools({ serverName, ...scope }) {
      // What cannot be listed now is missing for the whole turn: rather wait for a proxy that comes back.
      const waiting = { ...options(scope, 30_000), waitForReady: true };
      const { tools } = await client.listTools({ mcpServerName: serverName }, waiting);
      return tools;
    },

    async call({ serverName, name, inputJson, key, timeoutMs, acknowledgedKeys, ...scope }) {
      const { call, toolsChanged } = await client.callTool(
        {
          mcpServerName: serverName,
          name,
          inputJson: Buffer.from(inputJson),
          key,
          timeout: toDuration(timeoutMs),
          acknowledgedKeys: [...acknowledgedKeys],
        },
        options(scope, timeoutMs + ANSWER_MS),
      );
      if (!call) throw new Error("the proxy answered without a call");
      return { ...callOf(await whole(client, call, scope)), areToolsChanged: toolsChanged };
    },

    async *watch({ key, ...scope }) {
      yield* client.watchCall({ key }, options(scope, Number.POSITIVE_INFINITY));
    },

    async cancel({ key, ...scope }) {
      await client.cancelCall({ key }, options(scope, 10_000));
    },

    async lookUp({ key, ...scope }) {
      try {
        const { call, isRunning, mayRepeat } = await client.getCall({ key }, options(scope, 5000));
        if (isRunning) return { kind: "running" };
        if (!call) throw new Error("the proxy answered without a call");
        return { kind: mayRepeat ? "repeatable" : "known", value: callOf(await whole(client, call, scope)) };
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

/** The call with all of its result: one that no message can carry comes in pieces. */
async function whole(client: McpProxyClient, call: Call, scope: McpScope): Promise<Call> {
  const size = Number(call.fullSizeBytes);
  if (size === 0) return call;
  if (size > FULL_BYTES) return call;
  for (let tried = 1; ; tried++) {
    try {
      const pieces: Buffer[] = [];
      let read = 0;
      for await (const { data } of client.readCall({ key: call.key }, options(scope, 30_000))) {
        read += data.length;
        if (read > size) break;
        pieces.push(data);
      }
      if (read === size) return Call.decode(Buffer.concat(pieces));
    } catch {
      // The call was made all the same: if its result cannot be had, what says so is the result.
    }
    if (tried === FULL_TRIES || scope.signal.aborted) return call;
    await pause(250 * tried, scope.signal);
  }
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
