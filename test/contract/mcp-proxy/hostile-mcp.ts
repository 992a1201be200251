import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A JSON-RPC request as it came. */
export interface Rpc {
  id?: number;
  method: string;
  params?: Record<string, unknown>;
}

/** What a test makes the server do instead of answering well; true = it has answered. */
export type Misbehaviour = (rpc: Rpc, request: IncomingMessage, response: ServerResponse) => boolean;

/** A small MCP server that can be told to misbehave. */
export class HostileMcp {
  /** Every HTTP request. */
  readonly seen: { method: string; headers: IncomingMessage["headers"]; text: string; rpc?: Rpc }[] = [];
  misbehave: Misbehaviour = () => false;
  #sessions = new Set<string>();
  #server = createServer((request, response) => void this.#serve(request, response));

  static async start(port = 0): Promise<HostileMcp> {
    const made = new HostileMcp();
    made.#server.listen(port, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}/mcp`;
  }

  /** Requests of a JSON-RPC method. */
  of(method: string) {
    return this.seen.filter(({ rpc }) => rpc?.method === method);
  }

  /** Forgets all sessions, as a restart does. */
  forget(): void {
    this.#sessions.clear();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const rpc = text === "" ? undefined : (JSON.parse(text) as Rpc);
    this.seen.push({ method: request.method ?? "", headers: request.headers, text, ...(rpc ? { rpc } : {}) });
    if (!rpc) return void response.writeHead(405).end();
    if (this.misbehave(rpc, request, response)) return;
    if (rpc.method === "initialize") {
      const session = randomUUID();
      this.#sessions.add(session);
      const result = {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "hostile", version: "1" },
      };
      return answer(response, rpc, result, { "mcp-session-id": session });
    }
    if (!this.#sessions.has(String(request.headers["mcp-session-id"])))
      return void response.writeHead(404).end("gone");
    if (rpc.id === undefined) return void response.writeHead(202).end();
    if (rpc.method === "tools/call") {
      return answer(response, rpc, { content: [{ type: "text", text: JSON.stringify(rpc.params) }] });
    }
    return answer(response, rpc, { tools: [tool("one")] });
  }
}

/** A tool without a schema worth mentioning. */
export function tool(name: string): Record<string, unknown> {
  return { name, inputSchema: { type: "object" } };
}

/** Answers a request with a result. */
export function answer(
  response: ServerResponse,
  { id }: Rpc,
  result: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(200, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

/** Answers a request with a result in a stream of events, in pieces of `size` bytes. */
export function answerInPieces(response: ServerResponse, { id }: Rpc, result: unknown, size: number): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const bytes = Buffer.from(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size));
  response.end();
}
