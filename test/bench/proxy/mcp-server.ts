// An MCP server of two tools, `now` and `slow` (20 ms), and a model that answers at once; tells its port to its parent.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

const SLOW_MS = 20;
const ECHO = "x".repeat(1000);

const server = createServer((request, response) => {
  void text(request).then(async (body) => {
    const send = (value: unknown, headers = {}) => {
      response.writeHead(200, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(value));
    };
    if (request.url?.startsWith("/v1/messages")) return send(MESSAGE);
    if (body === "") return response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    if (method === "tools/call" && params.name === "slow") {
      await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    }
    const headers = method === "initialize" ? { "mcp-session-id": randomUUID() } : {};
    const result = RESULTS[method];
    if (!result) return send({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown" } });
    return send({ jsonrpc: "2.0", id, result }, headers);
  });
});

const TOOLS = ["now", "slow"].map((name) => ({ name, inputSchema: { type: "object" } }));
const RESULTS: Record<string, unknown> = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "bench", version: "1" },
  },
  "tools/list": { tools: TOOLS },
  "tools/call": { content: [{ type: "text", text: ECHO }] },
};
const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-test",
  content: [{ type: "text", text: "Hello." }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};

server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
