import type { McpCaller } from "../domain/mcp-caller.ts";
import type { UpstreamPools } from "./pools.ts";

/** A caller that can be told to get ready. */
export interface LazyMcpCaller extends McpCaller {
  load(): Promise<McpCaller>;
}

/**
 * Makes the caller of MCP servers without loading the SDK: that costs more time and memory than all the rest of this
 * process's start, and a start is what a mesh waits for.
 */
export function createLazyMcpCaller(pools: UpstreamPools): LazyMcpCaller {
  let loading: Promise<McpCaller> | undefined;
  let loaded: McpCaller | undefined;
  const load = () => {
    loading ??= import("./mcp-caller.ts").then(({ createMcpCaller }) => {
      loaded = createMcpCaller(pools);
      return loaded;
    });
    return loading;
  };
  return {
    load,
    listTools: async (...args) => (await load()).listTools(...args),
    callTool: async (...args) => (await load()).callTool(...args),
    isRepeatable: (...args) => loaded?.isRepeatable(...args) ?? false,
    haveToolsChanged: (...args) => loaded?.haveToolsChanged(...args) ?? false,
    drop: (sessionId) => loaded?.drop(sessionId),
    close: async () => loaded?.close(),
  };
}
