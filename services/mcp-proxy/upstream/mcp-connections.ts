import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { VERSION } from "../../common/version.ts";
import type { McpTarget, McpTool } from "../domain/mcp-caller.ts";
import { mcpFetch } from "./mcp-fetch.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** One initialized connection: a client of its own per session, server and credential version (case A042). */
export interface McpConnection {
  client: Client;
  transport: StreamableHTTPClientTransport;
  /** The last list of tools. */
  tools: Map<string, McpTool>;
  /** When it was taken; 0 = never, or the server has said since that it has another. */
  listedAt: number;
  /** Of the list, and of the one that a caller was told last; "" = none. */
  digest: string;
  told: string;
}

interface Entry {
  sessionId: string;
  ready: Promise<McpConnection>;
  usedAt: number;
}

/** Connections to MCP servers. */
export interface McpConnections {
  /** The connection of a target; made by the operation that is running when there is none. */
  get(target: McpTarget): Promise<McpConnection>;
  /** The connection when there is one already. */
  peek(target: McpTarget): McpConnection | undefined;
  /** Forgets a connection whose upstream session is gone. */
  forget(target: McpTarget, connection: McpConnection): void;
  drop(sessionId: string | null): void;
  close(): void;
}

const IDLE_MS = 600_000;
const INITIALIZE_MS = 20_000;

/** Makes the connections; idle ones are closed after ten minutes. */
export function createMcpConnections(): McpConnections {
  const entries = new Map<string, Entry>();
  const made = new WeakMap<Entry, McpConnection>();

  const close = (key: string, entry: Entry) => {
    if (entries.get(key) === entry) entries.delete(key);
    // Closing says nothing to the server: a farewell would carry the credential outside of any recorded request.
    entry.ready.then(({ client }) => client.close()).catch(() => {});
  };
  const sweep = setInterval(() => {
    for (const [key, entry] of entries) if (entry.usedAt < Date.now() - IDLE_MS) close(key, entry);
  }, IDLE_MS / 10);
  sweep.unref();

  return {
    get: async (target) => {
      const key = keyOf(target);
      const known = entries.get(key);
      if (known) {
        known.usedAt = Date.now();
        try {
          return await known.ready;
        } catch (error) {
          // Another operation began it and was cancelled; that is no reason for this one to fail.
          if (!(error instanceof UpstreamFailure) || error.kind !== "cancelled") throw error;
        }
      }
      const entry: Entry = { sessionId: target.access.sessionId, ready: connect(target), usedAt: Date.now() };
      entries.set(key, entry);
      try {
        const connection = await entry.ready;
        made.set(entry, connection);
        return connection;
      } catch (error) {
        if (entries.get(key) === entry) entries.delete(key);
        throw error;
      }
    },
    peek: (target) => {
      const entry = entries.get(keyOf(target));
      return entry && made.get(entry);
    },
    forget: (target, connection) => {
      const key = keyOf(target);
      const entry = entries.get(key);
      if (entry && made.get(entry) === connection) close(key, entry);
    },
    drop: (sessionId) => {
      for (const [key, entry] of entries) {
        if (sessionId === null || entry.sessionId === sessionId) close(key, entry);
      }
    },
    close: () => {
      clearInterval(sweep);
      for (const [key, entry] of entries) close(key, entry);
    },
  };
}

function keyOf({ access, destination, credential }: McpTarget): string {
  return JSON.stringify([
    access.sessionId,
    destination.url,
    credential?.credentialId ?? "",
    String(credential?.version ?? 0),
  ]);
}

async function connect({ destination }: McpTarget): Promise<McpConnection> {
  const transport = new StreamableHTTPClientTransport(new URL(destination.url), { fetch: mcpFetch });
  const client = new Client({ name: "ganglion", version: VERSION }, { capabilities: {} });
  // The SDK reports here what it cannot tell a caller; the operation hears of it in its own ways.
  client.onerror = () => {};
  try {
    await client.connect(transport, { timeout: INITIALIZE_MS });
  } catch (error) {
    await client.close().catch(() => {});
    throw error;
  }
  const connection: McpConnection = {
    client,
    transport,
    tools: new Map(),
    listedAt: 0,
    digest: "",
    told: "",
  };
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    connection.listedAt = 0;
  });
  return connection;
}
