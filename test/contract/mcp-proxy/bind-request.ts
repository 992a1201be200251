import { newId } from "../../../services/common/ids/new-id.ts";
import type { BindRequest } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { WORKSPACE } from "./proxy-kit.ts";

/** A binding of a new session to one MCP server, with what a test wants otherwise. */
export function bindRequest(more: Partial<BindRequest> = {}): BindRequest {
  return {
    sessionId: newId("sesn"),
    workspaceId: WORKSPACE,
    vaultIds: [],
    mcpServers: [{ name: "demo", url: "https://mcp.example.test/mcp" }],
    models: ["claude-test"],
    replacesMcpServers: false,
    networking: undefined,
    gitRepositories: [],
    ...more,
  };
}
