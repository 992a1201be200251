import { ErrorCode, ListToolsResultSchema, McpError, ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type {
  McpCaller,
  McpFailureKind,
  McpOutcome,
  McpTarget,
  McpTool,
  McpToolAnswer,
} from "../domain/mcp-caller.ts";
import { parseKeepingNumbers } from "./json-numbers.ts";
import { createMcpConnections, type McpConnection } from "./mcp-connections.ts";
import { currentOperation, type McpOperation } from "./mcp-operation.ts";
import type { UpstreamPools } from "./pools.ts";
import { readToolAnswer, readTools } from "./read-mcp.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** A tool is called only as long after its server described it. */
const BELIEVED_MS = 10_000;
const MAX_TOOLS = 1000;
const MAX_PAGES = 200;
/** A cancelled operation's farewell to the server has this long to leave. */
const FAREWELL_MS = 400;
/** After the end of its answer's stream an operation has this long to have got what it waits for. */
const SETTLE_MS = 250;

/** Ends what an operation left open. One for all: making an error costs more than the rest of the ending. */
const OVER = new UpstreamFailure("cancelled");

type Work<T> = (connection: McpConnection, signal: AbortSignal) => Promise<T>;

/** Makes the caller of MCP servers over pinned connections. */
export function createMcpCaller(pools: UpstreamPools): McpCaller {
  const connections = createMcpConnections();

  const perform = async <T>(
    target: McpTarget,
    signal: AbortSignal,
    work: Work<T>,
  ): Promise<McpOutcome<T>> => {
    const bytes = new AbortController();
    const request = new AbortController();
    const operation: McpOperation = {
      dispatcher: pools.get(target.destination, target.address, keyOf(target)),
      secret: target.secret?.value,
      credentialId: target.credential?.credentialId ?? "",
      signal: bytes.signal,
      isOver: false,
      mayHaveSent: false,
      exchanges: 0,
      requestBytes: 0,
      responseBytes: 0,
      redactions: 0,
      status: 0,
      onStreamEnd: (failure, isResumable) => {
        if (isResumable) return;
        const reason = failure ?? new UpstreamFailure("malformed");
        const { exchanges } = operation;
        const settle = () => {
          // The answer to `initialize` has ended long before that to a slow call that follows it.
          if (operation.exchanges === exchanges) currentOperation.run(operation, () => request.abort(reason));
        };
        setTimeout(settle, SETTLE_MS).unref();
      },
    };
    // The SDK sends its cancellation from the listener, so it has to run inside the operation.
    const onAbort = () =>
      currentOperation.run(operation, () => request.abort(asFailure(signal.reason, "cancelled")));
    signal.addEventListener("abort", onAbort, { once: true });
    const counters = () => ({
      status: operation.status,
      responseBytes: operation.responseBytes,
      redactions: operation.redactions,
    });
    try {
      signal.throwIfAborted();
      const value = await currentOperation.run(operation, () => attempt(target, request.signal, work));
      return { ok: true, value, counters: counters() };
    } catch (error) {
      if (GanglionError.is(error)) throw error;
      return { ok: false, ...describe(error, request.signal, operation), counters: counters() };
    } finally {
      signal.removeEventListener("abort", onAbort);
      const close = () => {
        operation.isOver = true;
        operation.secret = undefined;
        bytes.abort(OVER);
      };
      if (request.signal.aborted) setTimeout(close, FAREWELL_MS);
      else close();
    }
  };

  /** An upstream that restarted knows our session no more: forget it, initialize once, send once again (B085). */
  const attempt = async <T>(target: McpTarget, signal: AbortSignal, work: Work<T>): Promise<T> => {
    const isNew = connections.peek(target) === undefined;
    const connection = await connections.get(target);
    try {
      return await work(connection, signal);
    } catch (error) {
      const isLost =
        error instanceof UpstreamFailure && error.kind === "refused" && [400, 404].includes(error.status);
      if (!isLost || isNew || connection.transport.sessionId === undefined) throw error;
      connections.forget(target, connection);
      // What the restarted server says of its tools need not be what it said before: they are listed again.
      const fresh = await connections.get(target);
      fresh.told = connection.told;
      return await work(fresh, signal);
    }
  };

  return {
    listTools: (target, signal) =>
      perform(target, signal, async (connection, inner) => {
        const tools = await refresh(connection, inner);
        connection.told = connection.digest;
        return [...tools.values()];
      }),
    callTool: (target, { name, inputJson, silenceMs, totalMs, admit }, signal) =>
      perform(target, signal, async (connection, inner): Promise<McpToolAnswer> => {
        const { client } = connection;
        const isFresh = connection.listedAt > Date.now() - BELIEVED_MS && connection.tools.has(name);
        const tool = (isFresh ? connection.tools : await refresh(connection, inner)).get(name);
        if (!tool) throw new UpstreamFailure("not_listed");
        await admit(tool);
        const params = { name, arguments: parseKeepingNumbers(inputJson) as Record<string, unknown> };
        const result = await client.request({ method: "tools/call", params }, ResultSchema, {
          signal: inner,
          timeout: silenceMs,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: totalMs,
          // Without a listener no progress token is sent, and the server reports nothing (B092).
          onprogress: () => {},
        });
        return readToolAnswer(result);
      }),
    isRepeatable: (target, toolName) => {
      const json = connections.peek(target)?.tools.get(toolName)?.annotationsJson;
      if (!json) return false;
      const { readOnlyHint, idempotentHint } = JSON.parse(json) as Record<string, unknown>;
      return readOnlyHint === true || idempotentHint === true;
    },
    haveToolsChanged: (target) => {
      const known = connections.peek(target);
      if (!known || known.told === "") return false;
      return known.listedAt === 0 || known.told !== known.digest;
    },
    drop: (sessionId) => connections.drop(sessionId),
    close: async () => connections.close(),
  };
}

/** Lists the tools, and keeps the list for the calls that follow. Of two with one name the first one counts. */
async function refresh(connection: McpConnection, signal: AbortSignal): Promise<Map<string, McpTool>> {
  const since = Date.now();
  const tools = await listAll(connection, signal);
  connection.tools = new Map(tools.toReversed().map((tool) => [tool.name, tool]));
  connection.digest = digestOf(tools);
  connection.listedAt = since;
  return new Map(tools.map((tool) => [tool.name, connection.tools.get(tool.name) as McpTool]));
}

/** One digest of all tools, whatever their order. */
function digestOf(tools: readonly McpTool[]): string {
  return tools
    .map(({ pin }) => pin.sha256.toString("base64"))
    .sort()
    .join();
}

async function listAll({ client }: McpConnection, signal: AbortSignal): Promise<McpTool[]> {
  const tools: McpTool[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const result = await client.request({ method: "tools/list", params }, ListToolsResultSchema, { signal });
    tools.push(...readTools(result));
    if (tools.length > MAX_TOOLS) throw new UpstreamFailure("too_large");
    cursor = result.nextCursor;
    if (cursor === undefined || cursor === "") return tools;
    // A server that answers the same cursor again would go on for ever.
    if (seen.has(cursor)) throw new UpstreamFailure("malformed");
    seen.add(cursor);
  }
  throw new UpstreamFailure("too_large");
}

function keyOf({ access, credential }: McpTarget): string {
  return `mcp ${access.sessionId} ${credential?.credentialId ?? "-"} ${credential?.version ?? 0}`;
}

function asFailure(reason: unknown, otherwise: McpFailureKind): UpstreamFailure {
  return reason instanceof UpstreamFailure ? reason : new UpstreamFailure(otherwise as "cancelled");
}

function describe(error: unknown, signal: AbortSignal, operation: McpOperation) {
  const plain = (failure: McpFailureKind) => ({ failure, rpcCode: 0, text: "" });
  if (error instanceof UpstreamFailure) return plain(error.kind);
  // The SDK turns a cancellation into a timeout of its own.
  if (signal.aborted) return plain(asFailure(signal.reason, "cancelled").kind);
  if (error instanceof McpError && error.code === ErrorCode.RequestTimeout) return plain("timeout");
  if (error instanceof McpError && error.code !== ErrorCode.ConnectionClosed) {
    return { failure: "rpc_error" as const, rpcCode: error.code, text: error.message };
  }
  // Whatever else the SDK throws may quote the answer: keep nothing of it.
  return plain(operation.mayHaveSent ? "malformed" : "unreachable");
}
