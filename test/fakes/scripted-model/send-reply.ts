import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type ComposedMessage, makeId } from "./compose-message.ts";
import { errorBody } from "./error-body.ts";
import type { Fault, Reply } from "./reply.ts";
import type { InputUsage } from "./usage.ts";

/** How a reply ended, for the journal. */
export type Ending = "complete" | "error_event" | "cut" | "stalled" | "client_closed";

/** What a sender needs besides the connection. */
export interface Sending {
  readonly model: string;
  readonly reply: Reply;
  readonly message: ComposedMessage;
  readonly usage: InputUsage;
  readonly onFirstDelta: () => void;
}

/** The reply broke off on purpose, or because its reader left. */
class Broken extends Error {
  readonly ending: Ending;
  constructor(ending: Ending) {
    super(ending);
    this.ending = ending;
  }
}

/** sendStream sends a reply as server-sent events, delta by delta at its pace, with its fault at its place. */
export async function sendStream(response: ServerResponse, sending: Sending): Promise<Ending> {
  const { message, reply, usage } = sending;
  const delayMs = reply.pace?.delayMs ?? 0;
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  const send = async (event: { type: string } & Record<string, unknown>) => {
    if (closed.signal.aborted) throw new Broken("client_closed");
    if (response.write(frame(event))) return;
    await once(response, "drain", { signal: closed.signal }).catch(() => {});
  };
  let sent = 0;
  try {
    await send({
      type: "message_start",
      message: { ...envelope(sending, 1), content: [], stop_reason: null },
    });
    for (const [index, { opening, deltas }] of message.blocks.entries()) {
      await send({ type: "content_block_start", index, content_block: opening });
      if (index === 0) await send({ type: "ping" });
      for (const delta of deltas) {
        await breakAt(sent, reply.fault, response, closed.signal);
        if (delayMs > 0) await pause(delayMs, undefined, { signal: closed.signal }).catch(() => {});
        await send({ type: "content_block_delta", index, delta });
        sent += 1;
        if (sent === 1) sending.onFirstDelta();
      }
      await send({ type: "content_block_stop", index });
    }
    await breakAt(Number.POSITIVE_INFINITY, reply.fault, response, closed.signal);
    const delta = {
      stop_reason: message.stopReason,
      stop_sequence: null,
      stop_details: stopDetails(message.stopReason),
    };
    await send({ type: "message_delta", delta, usage: { ...usage, output_tokens: message.outputTokens } });
    await send({ type: "message_stop" });
    response.end();
    return "complete";
  } catch (error) {
    if (error instanceof Broken) return error.ending;
    throw error;
  }
}

/** sendWhole answers a request that did not ask for a stream. */
export async function sendWhole(response: ServerResponse, sending: Sending): Promise<Ending> {
  const { message, reply } = sending;
  const closed = new AbortController();
  response.once("close", () => closed.abort());
  const steps = message.blocks.reduce((sum, { deltas }) => sum + deltas.length, 0);
  await pause(steps * (reply.pace?.delayMs ?? 0), undefined, { signal: closed.signal }).catch(() => {});
  if (closed.signal.aborted) return "client_closed";
  try {
    await breakAt(Number.POSITIVE_INFINITY, reply.fault, response, closed.signal);
  } catch (error) {
    if (error instanceof Broken) return error.ending;
    throw error;
  }
  const body = {
    ...envelope(sending, message.outputTokens),
    content: message.blocks.map(({ whole }) => whole),
  };
  const stop = { stop_reason: message.stopReason, stop_details: stopDetails(message.stopReason) };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ ...body, ...stop }));
  return "complete";
}

function envelope({ model, message, usage }: Sending, outputTokens: number) {
  const created = {
    ephemeral_5m_input_tokens: usage.cache_creation_input_tokens,
    ephemeral_1h_input_tokens: 0,
  };
  return {
    id: message.id,
    type: "message",
    role: "assistant",
    model,
    stop_sequence: null,
    stop_details: null,
    usage: { ...usage, cache_creation: created, output_tokens: outputTokens, service_tier: "standard" },
  };
}

/** breakAt carries a fault out once `sent` deltas have gone. */
async function breakAt(
  sent: number,
  fault: Fault | undefined,
  response: ServerResponse,
  closed: AbortSignal,
) {
  if (!fault || fault.kind === "status" || sent < fault.after) return;
  const hasStarted = response.headersSent;
  if (fault.kind === "stall") {
    if (!closed.aborted) await once(response, "close");
    throw new Broken("stalled");
  }
  if (fault.kind === "error-event") {
    const body = errorBody(fault.errorType, "scripted error inside the reply", makeId("req"));
    if (hasStarted) response.end(frame(body));
    else response.writeHead(529, { "content-type": "application/json" }).end(JSON.stringify(body));
    throw new Broken("error_event");
  }
  await cutConnection(fault.how, response);
  throw new Broken("cut");
}

async function cutConnection(how: "end" | "fin" | "rst", response: ServerResponse): Promise<void> {
  if (!response.headersSent) response.flushHeaders();
  // "end" closes the HTTP message in good order: only the content tells that something is missing.
  if (how === "end") return void response.end();
  const { socket } = response;
  if (!socket) return;
  // Let what was sent reach the reader first: the cut is to fall where the script says.
  await new Promise<void>((resolve) => socket.write("", () => resolve()));
  if (how === "rst") socket.resetAndDestroy();
  else socket.end();
}

function frame(event: { type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function stopDetails(stopReason: string): object | null {
  return stopReason === "refusal"
    ? { type: "refusal", category: null, explanation: "scripted refusal" }
    : null;
}
