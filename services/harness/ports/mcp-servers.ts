import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import type { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import type { Knowledge } from "./hands.ts";

/** One tool as its server described it. */
export interface McpTool {
  name: string;
  description: string;
  inputSchemaJson: Uint8Array;
  annotationsJson: Uint8Array;
}

/** What became of a call, in the server's own words. */
export interface McpCall {
  outcome: ToolOutcome;
  content: readonly ContentBlock[];
  structuredContentJson: Uint8Array;
  isError: boolean;
  proxyRequestId: string;
  durationMs: bigint | undefined;
}

/** What every call needs: a session token, and on whose behalf it is made. */
export interface McpScope {
  token: string;
  signal: AbortSignal;
  traceparent: string;
}

/** MCP servers behind the credential proxy, as a brain needs them. Aborting a call only lets go of it: it goes on. */
export interface McpServers {
  listTools(request: McpScope & { serverName: string }): Promise<McpTool[]>;
  call(
    request: McpScope & {
      serverName: string;
      name: string;
      inputJson: Uint8Array;
      key: string;
      timeoutMs: number;
    },
  ): Promise<McpCall>;
  /** Calls nothing. */
  lookUp(request: McpScope & { key: string }): Promise<Knowledge<McpCall>>;
  /** Gives up a call that is under way; any other key is left as it is. */
  cancel(request: McpScope & { key: string }): Promise<void>;
}
