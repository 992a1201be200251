import {
  createServer,
  type IncomingMessage,
  request as openRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import { Journal } from "../process/journal.ts";
import { bearerOf, createSecretCheck } from "../process/secret-check.ts";

const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Hop-by-hop headers, and the credential: the server behind must never see it. */
const NOT_FORWARDED = new Set([
  "authorization",
  "host",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
]);

/** What the check in front of the MCP server is started with. */
export interface BearerProxyOptions {
  readonly socketPath: string;
  readonly token: string;
  readonly journalToken?: string;
}

/**
 * createBearerProxy makes an HTTP server that passes `/mcp` on to the MCP server when the request carries the one bearer
 * token, and answers 401 otherwise. Its journal counts the calls of each tool and never holds the token.
 */
export function createBearerProxy({ socketPath, token, journalToken }: BearerProxyOptions): Server {
  const isToken = createSecretCheck(token);
  const journal = new Journal(journalToken);
  const calls: Record<string, number> = {};
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/healthz") return void response.end("ok\n");
    if (url.pathname === "/journal") return journal.serve(request, response, url, { calls });
    if (!isToken(bearerOf(request.headers))) {
      const reason = request.headers.authorization === undefined ? "missing" : "wrong";
      journal.write("refused", { method: request.method, path: url.pathname, reason });
      response.setHeader("www-authenticate", 'Bearer realm="mcp", error="invalid_token"');
      return answer(response, 401, "a valid bearer token is required");
    }
    if (url.pathname !== "/mcp") return answer(response, 404, "no such path");
    const body = await readBody(request);
    if (!body) return answer(response, 413, "the request is too large");
    record(journal, calls, request, body);
    await forward(request, response, body, socketPath);
  };
  return createServer((request, response) => {
    handle(request, response).catch((error: Error) => {
      journal.write("failed", { error: error.message });
      if (response.headersSent) response.destroy();
      else answer(response, 502, "the MCP server did not answer");
    });
  });
}

function record(
  journal: Journal,
  calls: Record<string, number>,
  request: IncomingMessage,
  body: Buffer,
): void {
  const session = request.headers["mcp-session-id"];
  for (const message of parseMessages(body)) {
    const { method, params } = message;
    if (method === "tools/call") {
      const tool = String(params?.name);
      calls[tool] = (calls[tool] ?? 0) + 1;
      journal.write("call", { tool, arguments: params?.arguments, session });
    } else if (method) {
      journal.write("message", { method, session });
    }
  }
}

type RpcMessage = { method?: string; params?: { name?: unknown; arguments?: unknown } };

function parseMessages(body: Buffer): RpcMessage[] {
  try {
    const parsed: unknown = JSON.parse(body.toString("utf8"));
    return (Array.isArray(parsed) ? parsed : [parsed]).filter(
      (one) => typeof one === "object" && one !== null,
    );
  } catch {
    // The server behind answers malformed JSON itself.
    return [];
  }
}

function forward(
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  socketPath: string,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => !NOT_FORWARDED.has(name)),
  );
  const length = body.length > 0 ? { "content-length": body.length } : {};
  const upstream = openRequest({
    socketPath,
    method: request.method,
    path: request.url,
    headers: { ...headers, ...length, host: "localhost" },
  });
  upstream.once("error", reject);
  upstream.once("response", (reply) => {
    const kept = Object.entries(reply.headers).filter(
      ([name]) => !["connection", "keep-alive"].includes(name),
    );
    response.writeHead(reply.statusCode ?? 502, Object.fromEntries(kept));
    // A stream of events may stay silent for long: its headers must not wait for the first of them.
    response.flushHeaders();
    reply.pipe(response);
    reply.once("end", resolve);
    reply.once("error", reject);
  });
  response.once("close", () => {
    upstream.destroy();
    resolve();
  });
  upstream.end(body);
  return promise;
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function answer(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }));
}
