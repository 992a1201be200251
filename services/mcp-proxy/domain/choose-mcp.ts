import type { AccessRow, CredentialRow } from "./access.ts";
import type { BoundQuestion } from "./bound.ts";
import { type Destination, parseDestination } from "./canonical-url.ts";
import { MCP_KINDS } from "./credential-config.ts";
import { proxyError } from "./proxy-error.ts";

/** Finds the MCP server that a session's agent names, within the operator's policy, and its credential if there is one. */
export function chooseMcpServer(
  access: AccessRow,
  serverName: string,
  ask: (question: BoundQuestion) => void,
): { destination: Destination; credential: CredentialRow | undefined } {
  const server = access.mcpServers.find(({ name }) => name === serverName);
  if (!server) {
    throw proxyError("MCP_SERVER_NOT_FOUND", { metadata: { server: serverName.slice(0, 255) } });
  }
  const destination = parseDestination(server.url);
  if (!destination || destination.url !== server.url) throw proxyError("URL_NOT_CANONICAL");
  ask({ door: "mcp", destination });
  const credential = access.credentials.find(
    ({ kind, url }) => MCP_KINDS.includes(kind) && url === destination.url,
  );
  return { destination, credential };
}
