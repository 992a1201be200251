import { crashPoint } from "../../common/crash/crash-point.ts";
import { exchange, toFailure } from "./exchange.ts";
import { failureOfStatus } from "./mcp-failure.ts";
import { currentOperation, type McpOperation, release } from "./mcp-operation.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Largest answer of an MCP server, all of one HTTP body. */
export const MAX_BODY_BYTES = 16 << 20;

/** Bodies of an operation that are remembered, the newest: a server may have its stream taken up any number of times. */
const MAX_HEARD = 2;

/** Most of an answer that says what was wrong. */
const MAX_ERROR_BYTES = 65_536;

// The SDK's own headers; everything else is not sent. Those of the newer era repeat what the body says.
const SENT = [
  "accept",
  "content-type",
  "mcp-session-id",
  "mcp-protocol-version",
  "last-event-id",
  "mcp-method",
  "mcp-name",
];
const SENT_PREFIX = "mcp-param-";
// What the SDK reads of an answer. Without www-authenticate it has nothing to start an OAuth discovery from (A035).
const RETURNED = ["content-type", "mcp-session-id"];

/**
 * The fetch of the MCP SDK. It sends nothing outside of an operation, adds that operation's credential, follows no
 * redirect, and passes on answers without the credential.
 */
export function mcpFetch(input: string | URL, init: RequestInit = {}): Promise<Response> {
  return send(input, init, false);
}

/** The same for the oldest transport, whose answers all come on one stream: that is opened, once. */
export function mcpStreamFetch(): typeof mcpFetch {
  let isOpen = false;
  return (input, init = {}) => {
    const opens = (init.method ?? "GET") === "GET" && !isOpen;
    isOpen ||= opens;
    return send(input, init, opens);
  };
}

async function send(input: string | URL, init: RequestInit, opensStream: boolean): Promise<Response> {
  const operation = currentOperation.getStore();
  if (!operation || operation.isOver) throw new UpstreamFailure("cancelled");
  const asked = new Headers(init.headers);
  const method = init.method ?? "GET";
  // A stream outside of calls would be open for hours with a credential and no record: we say that there is none.
  const isRefused = method === "GET" && !opensStream && !asked.has("last-event-id");
  if (isRefused || (method !== "POST" && method !== "GET")) return new Response(null, { status: 405 });
  // Whatever came before has been answered, if the SDK goes on to this.
  if (method === "POST") operation.step += 1;
  const step = opensStream ? undefined : operation.step;

  const url = new URL(input);
  const headers: Record<string, string> = {};
  for (const name of SENT) {
    const value = asked.get(name);
    if (value !== null) headers[name] = value;
  }
  for (const [name, value] of asked) if (name.startsWith(SENT_PREFIX)) headers[name] = value;
  if (operation.secret !== undefined) headers.authorization = `Bearer ${operation.secret}`;
  const sent = typeof init.body === "string" ? init.body : undefined;
  operation.requestBytes += sent === undefined ? 0 : Buffer.byteLength(sent);
  const signals = [operation.signal, ...(init.signal ? [init.signal] : [])];
  const signal = AbortSignal.any(signals);
  const wasSent = operation.mayHaveSent;
  operation.mayHaveSent = true;
  let answer: Awaited<ReturnType<typeof exchange>>;
  try {
    const path = url.pathname + url.search;
    crashPoint("mcp.send");
    const asked = exchange(operation.dispatcher, {
      path,
      method,
      headers,
      ...(sent ? { body: sent } : {}),
      signal,
      met: operation.met,
    });
    // Behind the request, which does not wait for it.
    if (sent !== undefined) operation.traffic.sent(sent);
    operation.traffic.sentAll();
    answer = await asked;
  } catch (error) {
    const failure = toFailure(error, signal);
    if (failure.kind === "unreachable") operation.mayHaveSent = wasSent;
    throw failure;
  }
  crashPoint("mcp.receive");
  operation.status = answer.status;
  operation.traffic.answered();
  refuseStatus(answer.status, answer.discard);
  const isError = answer.status >= 400;
  const returned = new Headers();
  for (const name of RETURNED) {
    const value = answer.header(name);
    if (value !== undefined) returned.set(name, value);
  }
  if (answer.status === 202 || answer.status === 204) {
    answer.discard();
    return new Response(null, { status: answer.status, headers: returned });
  }
  const body = release(operation, answer.body, isError ? MAX_ERROR_BYTES : MAX_BODY_BYTES);
  const stream = toStream(operation, body, signal, step);
  return new Response(stream, { status: answer.status, headers: returned });
}

/**
 * Statuses with a meaning of their own never reach the SDK. The other ones of 400 and above do, with their bodies: in the
 * newer era these say which versions a server speaks, and what is wrong with a request.
 */
function refuseStatus(status: number, discard: () => void): void {
  if (status >= 200 && status < 300) return;
  const failure = failureOfStatus(status);
  if (failure.kind === "refused" && status >= 400) return;
  discard();
  throw failure;
}

function toStream(
  operation: McpOperation,
  source: AsyncGenerator<Buffer>,
  signal: AbortSignal,
  step: number | undefined,
): ReadableStream<Uint8Array> {
  let isResumable = false;
  let heard: Buffer[] | undefined;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { value, done } = await source.next();
          if (done) {
            crashPoint("mcp.end");
            controller.close();
            operation.onStreamEnd(undefined, isResumable, step);
            return;
          }
          isResumable ||= value.includes("\nid:") || value.subarray(0, 3).equals(Buffer.from("id:"));
          if (operation.heard && !heard) {
            heard = [];
            operation.heard.push(heard);
            if (operation.heard.length > MAX_HEARD) operation.heard.shift();
          }
          heard?.push(value);
          controller.enqueue(new Uint8Array(value));
        } catch (error) {
          const failure =
            error instanceof RangeError ? new UpstreamFailure("too_large") : toFailure(error, signal);
          controller.error(failure);
          operation.onStreamEnd(failure, isResumable && failure.kind === "broken", step);
        }
      },
      cancel: async () => {
        await source.return(undefined).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}
