import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as pass } from "node:timers/promises";
import { bearerOf, createSecretCheck } from "../process/secret-check.ts";

const MAX_BODY_BYTES = 64 * 1024;
const METHOD_NOT_FOUND = -32601;

/** What the counter is started with. */
export interface CounterOptions {
  readonly token: string;
  readonly journalToken: string;
}

const TOOL = {
  name: "count",
  description: "Counts a key once more, waits and says how often the key was counted.",
  inputSchema: {
    type: "object",
    properties: { key: { type: "string" }, wait_ms: { type: "integer", minimum: 0, maximum: 10_000 } },
    required: ["key"],
  },
  // Nobody may call it twice for the same reason.
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};

/**
 * createCounterServer makes an MCP server without sessions (Streamable HTTP, answers as JSON) with one tool whose only
 * effect can be seen from outside: `GET /counts` says how often each key was counted.
 */
export function createCounterServer({ token, journalToken }: CounterOptions): Server {
  const [isToken, mayRead] = [createSecretCheck(token), createSecretCheck(journalToken)];
  const counts: Record<string, number> = {};

  const call = async ({ key, wait_ms: waitMs }: { key?: unknown; wait_ms?: unknown }) => {
    const name = String(key);
    const count = (counts[name] ?? 0) + 1;
    counts[name] = count;
    await pass(Number(waitMs ?? 0));
    return { content: [{ type: "text", text: String(count) }] };
  };
  const resultOf = (method: string, params: Record<string, unknown>): unknown => {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "counter", version: "1" },
        };
      case "ping":
        return {};
      case "tools/list":
        return { tools: [TOOL] };
      case "tools/call":
        return call((params.arguments ?? {}) as object);
      default:
        return undefined;
    }
  };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url?.split("?")[0];
    if (path === "/counts" && mayRead(bearerOf(request.headers))) return send(response, 200, counts);
    if (!isToken(bearerOf(request.headers))) return send(response, 401, { error: "a token is required" });
    if (path !== "/mcp") return send(response, 404, { error: "no such path" });
    if (request.method !== "POST") return send(response, 405, { error: "only POST" });
    const { id, method, params } = (await readJson(request)) as Rpc;
    if (id === undefined) return void response.writeHead(202).end();
    const result = await resultOf(method, params ?? {});
    const outcome =
      result === undefined ? { error: { code: METHOD_NOT_FOUND, message: "no such method" } } : { result };
    send(response, 200, { jsonrpc: "2.0", id, ...outcome });
  };
  return createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
}

type Rpc = { id?: number | string; method: string; params?: Record<string, unknown> };

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error("too large");
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString("utf8"));
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
