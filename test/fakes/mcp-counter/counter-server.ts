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
 * effect can be seen from outside: `GET /counts` says how often each key was counted. A call that waits is answered as a
 * stream of events to who asks for its progress, which is reported once, halfway.
 */
export function createCounterServer({ token, journalToken }: CounterOptions): Server {
  const [isToken, mayRead] = [createSecretCheck(token), createSecretCheck(journalToken)];
  const counts: Record<string, number> = {};

  const call = async ({ key, wait_ms: waitMs }: Arguments, isHalfway: () => void) => {
    const name = String(key);
    const count = (counts[name] ?? 0) + 1;
    counts[name] = count;
    await pass(Number(waitMs ?? 0) / 2);
    isHalfway();
    await pass(Number(waitMs ?? 0) / 2);
    return { content: [{ type: "text", text: String(count) }] };
  };
  const resultOf = (method: string, params: Params, isHalfway: () => void): unknown => {
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
        return call(params.arguments ?? {}, isHalfway);
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
    const progressToken = params?._meta?.progressToken;
    const isStream = progressToken !== undefined && Number(params?.arguments?.wait_ms ?? 0) > 0;
    if (isStream) response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    const result = await resultOf(method, params ?? {}, () => {
      const report = { progressToken, progress: 0.5, total: 1, message: "halfway" };
      if (isStream) sendEvent(response, { method: "notifications/progress", params: report });
    });
    const outcome =
      result === undefined ? { error: { code: METHOD_NOT_FOUND, message: "no such method" } } : { result };
    if (!isStream) return send(response, 200, { jsonrpc: "2.0", id, ...outcome });
    sendEvent(response, { id, ...outcome });
    response.end();
  };
  return createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
}

type Arguments = { key?: unknown; wait_ms?: unknown };
type Params = { protocolVersion?: unknown; arguments?: Arguments; _meta?: { progressToken?: unknown } };
type Rpc = { id?: number | string; method: string; params?: Params };

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

function sendEvent(response: ServerResponse, message: object): void {
  response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
}
