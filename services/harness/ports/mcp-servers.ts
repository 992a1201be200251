import type { ContentBlock } from "../../gen/ganglion/types/v1/content.ts";
import type { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import type { Knowledge } from "./hands.ts";

/** One tool as its server described it. */
export interface McpTool {
  name: string;
  description: string;
  inputSchemaJson: Uint8Array;
  annotationsJson: Uint8Array;
  /** The proxy's digest of the definition. */
  pinSha256: Uint8Array;
}

/** What became of a call, in the server's own words. */
export interface McpCall {
  outcome: ToolOutcome;
  content: readonly ContentBlock[];
  structuredContentJson: Uint8Array;
  isError: boolean;
  proxyRequestId: string;
  durationMs: bigint | undefined;
  /** The server's tools are not those that were listed last. */
  areToolsChanged?: boolean;
}

/** What the proxy's journal knows; "repeatable" = the outcome is lost, and calling again under the key does no harm. */
export type McpKnowledge = Knowledge<McpCall> | { kind: "repeatable"; value: McpCall };

/** How far a call is, in its server's words: shown to people, and nothing depends on it. */
export interface McpProgress {
  progress: number;
  /** 0 = unknown. */
  total: number;
  message: string;
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
      /** Calls whose results the log holds: the journal need not keep them. */
      acknowledgedKeys: readonly string[];
    },
  ): Promise<McpCall>;
  /** Calls nothing. */
  lookUp(request: McpScope & { key: string }): Promise<McpKnowledge>;
  /** What the server of a call reports while it is under way; ends with the call. May be missing reports, and may fail. */
  watch(request: McpScope & { key: string }): AsyncIterable<McpProgress>;
  /** Gives up a call that is under way; any other key is left as it is. */
  cancel(request: McpScope & { key: string }): Promise<void>;
}
