import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

/** answerMcp is a small MCP server with one tool, `whoami`; whoever comes here has shown a good token. */
export async function answerMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = "";
  for await (const chunk of request) text += chunk;
  if (text === "") return void response.writeHead(405).end();
  const { id, method, params } = JSON.parse(text) as {
    id?: number;
    method: string;
    params?: { name?: string };
  };
  const answer = (result: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(200, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  };
  if (method === "initialize") {
    const serverInfo = { name: "protected", version: "1" };
    return answer(
      { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo },
      { "mcp-session-id": randomUUID() },
    );
  }
  if (id === undefined) return void response.writeHead(202).end();
  if (method === "tools/list") {
    return answer({
      tools: [{ name: "whoami", description: "Says hello.", inputSchema: { type: "object" } }],
    });
  }
  return answer({ content: [{ type: "text", text: `hello from ${params?.name}` }] });
}
