import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Rpc, tool } from "./hostile-mcp.ts";

/** A server of the oldest transport: answers come on the stream that a GET opened. */
export class OldMcp {
  readonly authorizations: (string | undefined)[] = [];
  open = 0;
  pieces = 0;
  cuts = false;
  text: (() => string) | undefined;
  /** Structured content as it shall be written. */
  structured: string | undefined;
  #idle: (() => void)[] = [];
  #streams = new Map<string, ServerResponse>();
  #server = createServer((request, response) => {
    this.authorizations.push(request.headers.authorization);
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/sse" && request.method === "GET") return this.#openStream(response);
    const stream = this.#streams.get(url.searchParams.get("session") ?? "");
    if (request.method !== "POST" || !stream) return void response.writeHead(405).end();
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      response.writeHead(202).end("Accepted");
      this.#answer(stream, JSON.parse(body) as Rpc);
    });
  });

  static async start(): Promise<OldMcp> {
    const made = new OldMcp();
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}/sse`;
  }

  /** Resolves when no stream is open. */
  async idle(): Promise<void> {
    if (this.open > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #openStream(response: ServerResponse): void {
    const session = randomUUID();
    this.open += 1;
    response.on("close", () => {
      this.open -= 1;
      this.#streams.delete(session);
      if (this.open === 0) for (const tell of this.#idle.splice(0)) tell();
    });
    this.#streams.set(session, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`event: endpoint\ndata: /messages?session=${session}\n\n`);
  }

  #answer(stream: ServerResponse, { id, method, params }: Rpc): void {
    if (id === undefined) return;
    if (method === "tools/call" && this.cuts) return void stream.end();
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2024-11-05",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
      },
      "tools/list": { tools: [tool("one")] },
      "tools/call": { content: [{ type: "text", text: this.text?.() ?? JSON.stringify(params?.arguments) }] },
    };
    const result = JSON.stringify(results[method]).replace(
      /\}$/,
      method === "tools/call" && this.structured ? `,"structuredContent":${this.structured}}` : "}",
    );
    const event = `event: message\ndata: {"jsonrpc":"2.0","id":${id},"result":${result}}\n\n`;
    const size = this.pieces || event.length;
    for (let at = 0; at < event.length; at += size) stream.write(event.slice(at, at + size));
  }
}
