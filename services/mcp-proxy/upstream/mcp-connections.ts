import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { VERSION } from "../../common/version.ts";
import type { McpPlace, McpTarget, McpTool } from "../domain/mcp-caller.ts";
import { failureIn } from "./mcp-failure.ts";
import { mcpFetch, mcpStreamFetch } from "./mcp-fetch.ts";

/** What is known of a server's tools. */
export interface ToolList {
  tools: Map<string, McpTool>;
  /** When it was taken; 0 = never, or the server has said since that it has another. */
  listedAt: number;
  /** Of the list, and of the one that a caller was told last; "" = none. */
  digest: string;
  told: string;
}

/** One connection: a client of its own per session, server and credential version (case A042). */
export interface McpConnection {
  client: Client;
  list: ToolList;
  /** The server knows us by a session that it may forget. */
  hasSession: boolean;
  /** For the operation that made it only: it has an open stream, which no other operation's record covers. */
  isForOne: boolean;
}

interface Entry {
  sessionId: string;
  ready: Promise<McpConnection>;
  list: ToolList;
  usedAt: number;
}

/**
 * How a server is spoken to. "modern": the era without `initialize`, from 2026-07-28 on. "legacy": Streamable HTTP with
 * `initialize`. "stream": HTTP with one stream of events, as before 2025-03-26.
 */
type Manner = "modern" | "legacy" | "stream";

/** Connections to MCP servers. */
export interface McpConnections {
  /** The connection of a target; made by the operation that is running when there is none. */
  get(target: McpTarget): Promise<{ connection: McpConnection; isNew: boolean }>;
  /** What is known of a target's tools. */
  listOf(target: McpPlace): ToolList | undefined;
  /** Forgets a connection whose upstream session is gone. */
  forget(target: McpTarget): void;
  drop(sessionId: string | null): void;
  close(): void;
}

const IDLE_MS = 600_000;
const INITIALIZE_MS = 20_000;
/** A server that does not answer the question of the newer era in that time is asked in the older one. */
const PROBE_MS = 6000;
/** A server may have learned the newer era since. */
const REMEMBER_MS = 600_000;
const MAX_REMEMBERED = 1000;
/** What a server answers to a POST when it only knows the oldest transport. */
const NO_POST = [400, 404, 405];

/** Makes the connections; idle ones are closed after ten minutes. */
export function createMcpConnections(): McpConnections {
  const entries = new Map<string, Entry>();
  const manners = new Map<string, { manner: Manner; until: number }>();

  const close = (key: string, entry: Entry) => {
    if (entries.get(key) === entry) entries.delete(key);
    // Closing says nothing to the server: a farewell would carry the credential outside of any recorded request.
    entry.ready.then(({ client }) => client.close()).catch(() => {});
  };
  const sweep = setInterval(() => {
    for (const [key, entry] of entries) if (entry.usedAt < Date.now() - IDLE_MS) close(key, entry);
  }, IDLE_MS / 10);
  sweep.unref();

  const connect = async (target: McpTarget, list: ToolList): Promise<McpConnection> => {
    const { url } = target.destination;
    const known = manners.get(url);
    const manner = known && known.until > Date.now() ? known.manner : undefined;
    const made = await connectInManner(url, list, manner);
    if (manners.size >= MAX_REMEMBERED) manners.clear();
    manners.set(url, { manner: made.manner, until: Date.now() + REMEMBER_MS });
    return made;
  };

  return {
    get: async (target) => {
      const key = keyOf(target);
      const known = entries.get(key);
      if (known) {
        known.usedAt = Date.now();
        try {
          const connection = await known.ready;
          if (!connection.isForOne) return { connection, isNew: false };
          return { connection: await connect(target, known.list), isNew: true };
        } catch (error) {
          // Another operation began it and was cancelled; that is no reason for this one to fail.
          if (failureIn(error)?.kind !== "cancelled") throw error;
        }
      }
      const list = known?.list ?? { tools: new Map(), listedAt: 0, digest: "", told: "" };
      const sessionId = target.access.sessionId;
      const entry: Entry = { sessionId, ready: connect(target, list), list, usedAt: Date.now() };
      entries.set(key, entry);
      try {
        return { connection: await entry.ready, isNew: true };
      } catch (error) {
        if (entries.get(key) === entry) entries.delete(key);
        throw error;
      }
    },
    listOf: (target) => entries.get(keyOf(target))?.list,
    forget: (target) => {
      const key = keyOf(target);
      const entry = entries.get(key);
      if (entry) close(key, entry);
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

function keyOf({ access, destination, credential }: McpPlace): string {
  return JSON.stringify([
    access.sessionId,
    destination.url,
    credential?.credentialId ?? "",
    String(credential?.version ?? 0),
  ]);
}

type Made = McpConnection & { manner: Manner };

/** Connects as the server was spoken to before, or as the specification says to find that out. */
async function connectInManner(url: string, list: ToolList, manner: Manner | undefined): Promise<Made> {
  if (manner === "stream") return connectOverStream(url, list);
  let refusal: unknown;
  try {
    return await connectByPost(url, list, manner === "legacy" ? "legacy" : "auto");
  } catch (error) {
    const failure = failureIn(error);
    const isOdd = failure?.kind === "timeout" || (failure?.kind === "broken" && failure.status >= 500);
    // Some servers of the older era fall over a question that they do not know.
    if (isOdd && manner === undefined) return connectByPost(url, list, "legacy");
    if (failure?.kind !== "refused" || !NO_POST.includes(failure.status)) throw error;
    refusal = error;
  }
  try {
    return await connectOverStream(url, list);
  } catch {
    throw refusal;
  }
}

async function connectByPost(url: string, list: ToolList, mode: "legacy" | "auto"): Promise<Made> {
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: mcpFetch });
  const client = createClient(list, mode);
  await begin(client, transport);
  const manner = client.getProtocolEra() === "modern" ? "modern" : "legacy";
  return { client, list, hasSession: transport.sessionId !== undefined, isForOne: false, manner };
}

async function connectOverStream(url: string, list: ToolList): Promise<Made> {
  const client = createClient(list, "legacy");
  await begin(client, new SSEClientTransport(new URL(url), { fetch: mcpStreamFetch() }));
  return { client, list, hasSession: false, isForOne: true, manner: "stream" };
}

function createClient(list: ToolList, mode: "legacy" | "auto"): Client {
  const versionNegotiation = { mode, probe: { timeoutMs: PROBE_MS } };
  const client = new Client({ name: "ganglion", version: VERSION }, { capabilities: {}, versionNegotiation });
  // The SDK reports here what it cannot tell a caller; the operation hears of it in its own ways.
  client.onerror = () => {};
  client.setNotificationHandler("notifications/tools/list_changed", () => {
    list.listedAt = 0;
  });
  return client;
}

async function begin(client: Client, transport: Parameters<Client["connect"]>[0]): Promise<void> {
  try {
    await client.connect(transport, { timeout: INITIALIZE_MS });
  } catch (error) {
    await client.close().catch(() => {});
    throw failureIn(error) ?? error;
  }
}
