import {
  isInputRequiredResult,
  ProtocolError,
  type RequestOptions,
  type StandardSchemaV1,
  type Tool,
} from "@modelcontextprotocol/client";
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
import { failureIn } from "./mcp-failure.ts";
import { currentOperation, type McpOperation } from "./mcp-operation.ts";
import type { UpstreamPools } from "./pools.ts";
import { readToolAnswer, readTools } from "./read-mcp.ts";
import { createProgressReader } from "./read-progress.ts";
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

/** Failures that say nothing of the tool when they come before its call: while connecting, or listing. */
const AMBIGUOUS: ReadonlySet<McpFailureKind> = new Set([
  ...(["broken", "malformed", "too_large", "timeout", "rpc_error"] as const),
]);

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
      met: target.met,
      traffic: target.traffic,
      secret: target.secret?.value,
      credentialId: target.credential?.credentialId ?? "",
      signal: bytes.signal,
      isOver: false,
      mayHaveSent: false,
      requestBytes: 0,
      responseBytes: 0,
      redactions: 0,
      heard: undefined,
      status: 0,
      onStreamEnd: (failure, isResumable, step) => {
        if (isResumable) return;
        const giveUp = () => {
          if (operation.isOver || (step !== undefined && step !== operation.step)) return;
          const reason = failure ?? new UpstreamFailure("malformed");
          currentOperation.run(operation, () => request.abort(reason));
        };
        setTimeout(giveUp, SETTLE_MS).unref();
      },
      step: 0,
    };
    // The SDK sends its cancellation from the listener, so it has to run inside the operation.
    const onAbort = () =>
      currentOperation.run(operation, () => request.abort(asFailure(signal.reason, "cancelled")));
    signal.addEventListener("abort", onAbort, { once: true });
    const counters = (isReleased: boolean) => {
      if (isReleased) target.traffic.cameAll();
      const { status, responseBytes, redactions } = operation;
      return { status, responseBytes, redactions, isReleased };
    };
    try {
      signal.throwIfAborted();
      const value = await currentOperation.run(operation, () => attempt(target, request.signal, work));
      return { ok: true, value, counters: counters(true) };
    } catch (error) {
      if (GanglionError.is(error)) throw error;
      const failed = describe(error, request.signal, operation);
      return { ok: false, ...failed, counters: counters(failed.failure === "rpc_error") };
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
    const { connection, isNew } = await connections.get(target);
    try {
      return await work(connection, signal);
    } catch (error) {
      const failure = failureIn(error);
      const isLost = failure?.kind === "refused" && [400, 404].includes(failure.status);
      if (!isLost || isNew || !connection.hasSession) throw error;
      const { told } = connection.list;
      connections.forget(target);
      // What the restarted server says of its tools need not be what it said before: they are listed again.
      const fresh = (await connections.get(target)).connection;
      fresh.list.told = told;
      return await work(fresh, signal);
    } finally {
      if (connection.isForOne) await connection.client.close().catch(() => {});
    }
  };

  return {
    listTools: (target, signal) =>
      perform(target, signal, async (connection, inner) => {
        const tools = await refresh(connection, inner);
        connection.list.told = connection.list.digest;
        return tools;
      }),
    callTool: async (target, { name, inputJson, silenceMs, totalMs, admit, onProgress }, signal) => {
      let isSent = false;
      const outcome = await perform(target, signal, async (connection, inner): Promise<McpToolAnswer> => {
        isSent = false;
        const { list } = connection;
        if (list.listedAt <= Date.now() - BELIEVED_MS || !list.tools.has(name))
          await refresh(connection, inner);
        const tool = list.tools.get(name);
        if (!tool) throw new UpstreamFailure("not_listed");
        await admit(tool);
        const params = { name, arguments: parseKeepingNumbers(inputJson) as Record<string, unknown> };
        const readProgress = createProgressReader(target);
        const options: RequestOptions = {
          signal: inner,
          timeout: silenceMs,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: totalMs,
          // Without a listener no progress token is sent, and the server reports nothing (B092).
          onprogress: (reported) => {
            const progress = readProgress(reported);
            if (progress) onProgress(progress);
          },
          // Nobody here can answer what a server of the newer era asks back in the middle of a call.
          allowInputRequired: true,
        };
        isSent = true;
        const heard: Buffer[][] = [];
        const operation = currentOperation.getStore();
        if (operation) operation.heard = heard;
        const result = await callIn(connection, tool, params, options);
        if (isInputRequiredResult(result)) throw new UpstreamFailure("asks_back");
        return readToolAnswer(result, heard);
      });
      const isBefore = !outcome.ok && !isSent && AMBIGUOUS.has(outcome.failure);
      if (!isBefore) return outcome;
      return { ...outcome, failure: "not_called", counters: { ...outcome.counters, isReleased: false } };
    },
    isRepeatable: (target, toolName) => {
      const json = connections.listOf(target)?.tools.get(toolName)?.annotationsJson;
      if (!json) return false;
      const { readOnlyHint, idempotentHint } = JSON.parse(json) as Record<string, unknown>;
      return readOnlyHint === true || idempotentHint === true;
    },
    haveToolsChanged: (target) => {
      const list = connections.listOf(target);
      if (!list || list.told === "") return false;
      return list.listedAt === 0 || list.told !== list.digest;
    },
    drop: (sessionId) => connections.drop(sessionId),
    close: async () => connections.close(),
  };
}

/** Takes whatever comes: what of an answer is wrong is judged part by part. */
const ANYTHING: StandardSchemaV1<unknown, Record<string, unknown>> = {
  "~standard": {
    version: 1,
    vendor: "ganglion",
    validate: (value: unknown) => ({ value: value as Record<string, unknown> }),
  },
};

/** In the newer era some arguments are repeated in headers when the tool's schema says so; the SDK knows how. */
const REPEATS_IN_HEADERS = /"x-mcp-header"/;

async function callIn(
  { client }: McpConnection,
  tool: McpTool,
  params: { name: string; arguments: Record<string, unknown> },
  options: RequestOptions,
): Promise<Record<string, unknown>> {
  if (client.getProtocolEra() === "modern" && REPEATS_IN_HEADERS.test(tool.inputSchemaJson)) {
    // Without an output schema it has nothing to refuse an answer for (B104).
    const toolDefinition = { name: tool.name, inputSchema: JSON.parse(tool.inputSchemaJson) } as Tool;
    return client.callTool(params, { ...options, toolDefinition });
  }
  return client.request({ method: "tools/call", params }, ANYTHING, options);
}

/** Lists the tools, and keeps the list for the calls that follow. Of two with one name the first one counts. */
async function refresh({ client, list }: McpConnection, signal: AbortSignal): Promise<McpTool[]> {
  const since = Date.now();
  const tools = new Map<string, McpTool>();
  for (const tool of await listAll(client, signal)) if (!tools.has(tool.name)) tools.set(tool.name, tool);
  list.tools = tools;
  list.digest = digestOf([...tools.values()]);
  list.listedAt = since;
  return [...tools.values()];
}

/** One digest of all tools, whatever their order. */
function digestOf(tools: readonly McpTool[]): string {
  return tools
    .map(({ pin }) => pin.sha256.toString("base64"))
    .sort()
    .join();
}

async function listAll(client: McpConnection["client"], signal: AbortSignal): Promise<McpTool[]> {
  const tools: McpTool[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const result = await client.request({ method: "tools/list", params }, ANYTHING, { signal });
    const operation = currentOperation.getStore();
    if (operation) operation.step += 1;
    tools.push(...readTools(result));
    if (tools.length > MAX_TOOLS) throw new UpstreamFailure("too_large");
    const { nextCursor } = result;
    if (nextCursor === undefined || nextCursor === "") return tools;
    if (typeof nextCursor !== "string") throw new UpstreamFailure("malformed");
    cursor = nextCursor;
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
  if (ProtocolError.isInstance(error)) {
    return { failure: "rpc_error" as const, rpcCode: error.code, text: error.message };
  }
  const failure = failureIn(error);
  if (failure) {
    operation.status ||= failure.status;
    return plain(failure.kind);
  }
  // Whatever else the SDK throws may quote the answer: keep nothing of it.
  return plain(operation.mayHaveSent ? "malformed" : "unreachable");
}
