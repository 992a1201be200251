import { crashPoint } from "../../common/crash/crash-point.ts";
import { exchange, toFailure } from "./exchange.ts";
import { currentOperation, type McpOperation, release } from "./mcp-operation.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Largest answer of an MCP server, all of one HTTP body. */
export const MAX_BODY_BYTES = 16 << 20;

// The SDK's own headers; everything else is not sent.
const SENT = ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
// What the SDK reads of an answer. Without www-authenticate it has nothing to start an OAuth discovery from (A035).
const RETURNED = ["content-type", "mcp-session-id"];

/**
 * The fetch of the MCP SDK. It sends nothing outside of an operation, adds that operation's credential, follows no
 * redirect, and passes on answers without the credential.
 */
export async function mcpFetch(input: string | URL, init: RequestInit = {}): Promise<Response> {
  const operation = currentOperation.getStore();
  if (!operation || operation.isOver) throw new UpstreamFailure("cancelled");
  const asked = new Headers(init.headers);
  // A stream outside of calls would be open for hours with a credential and no record: we say that there is none.
  if (init.method === "GET" && !asked.has("last-event-id")) return new Response(null, { status: 405 });
  if (init.method !== "POST" && init.method !== "GET") return new Response(null, { status: 405 });

  const url = new URL(input);
  const headers: Record<string, string> = {};
  for (const name of SENT) {
    const value = asked.get(name);
    if (value !== null) headers[name] = value;
  }
  if (operation.secret !== undefined) headers.authorization = `Bearer ${operation.secret}`;
  const body = typeof init.body === "string" ? init.body : undefined;
  operation.exchanges += 1;
  operation.requestBytes += body === undefined ? 0 : Buffer.byteLength(body);
  const signals = [operation.signal, ...(init.signal ? [init.signal] : [])];
  const signal = AbortSignal.any(signals);
  const wasSent = operation.mayHaveSent;
  operation.mayHaveSent = true;
  let answer: Awaited<ReturnType<typeof exchange>>;
  try {
    const path = url.pathname + url.search;
    crashPoint("mcp.send");
    answer = await exchange(operation.dispatcher, {
      path,
      method: init.method,
      headers,
      ...(body ? { body } : {}),
      signal,
    });
  } catch (error) {
    const failure = toFailure(error, signal);
    if (failure.kind === "unreachable") operation.mayHaveSent = wasSent;
    throw failure;
  }
  crashPoint("mcp.receive");
  operation.status = answer.status;
  refuseStatus(answer.status, answer.discard);
  const returned = new Headers();
  for (const name of RETURNED) {
    const value = answer.header(name);
    if (value !== undefined) returned.set(name, value);
  }
  if (answer.status === 202 || answer.status === 204) {
    answer.discard();
    return new Response(null, { status: answer.status, headers: returned });
  }
  return new Response(toStream(operation, answer.body, signal), { status: answer.status, headers: returned });
}

/** Statuses with a meaning of their own never reach the SDK, which would put the body's text into its error. */
function refuseStatus(status: number, discard: () => void): void {
  const kind =
    status >= 300 && status < 400
      ? "redirect"
      : status === 401 || status === 403
        ? "unauthorized"
        : status === 404
          ? "refused"
          : status >= 500
            ? "broken"
            : status >= 400 || status < 200
              ? "refused"
              : undefined;
  if (!kind) return;
  discard();
  throw new UpstreamFailure(kind, status);
}

function toStream(
  operation: McpOperation,
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const source = release(operation, body, MAX_BODY_BYTES);
  let isResumable = false;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { value, done } = await source.next();
          if (done) {
            crashPoint("mcp.end");
            controller.close();
            operation.onStreamEnd(undefined, isResumable);
            return;
          }
          isResumable ||= value.includes("\nid:") || value.subarray(0, 3).equals(Buffer.from("id:"));
          controller.enqueue(new Uint8Array(value));
        } catch (error) {
          const failure =
            error instanceof RangeError ? new UpstreamFailure("too_large") : toFailure(error, signal);
          controller.error(failure);
          operation.onStreamEnd(failure, isResumable && failure.kind === "broken");
        }
      },
      cancel: async () => {
        await source.return(undefined).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}
