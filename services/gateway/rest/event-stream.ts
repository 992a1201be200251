import { setTimeout as wait } from "node:timers/promises";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { CallOptions } from "../../common/grpc/create-client.ts";
import type { Preview, WatchEventsResponse } from "../../gen/ganglion/session/v1/session_service.ts";
import { eventToJson, isClientEvent } from "../domain/event-to-json.ts";
import { PreviewFrames } from "../domain/preview-frames.ts";
import { writeJson } from "../domain/raw-json.ts";
import { restoreLargeBlocks } from "./large-blocks.ts";
import { takenTimes } from "./list-events.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { RestContext, RestDeps } from "./rest-deps.ts";

const PING_MS = 15_000;
/** How long the log may be away before a stream is given up; clients connect again. */
const PATIENCE_MS = 20_000;
const RETRY_MS = 200;
const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

type Deps = RestDeps & { readonly streams: OpenStreams };

/**
 * streamEvents answers with server-sent events from now on, beginning with the turn in progress. Headers leave at
 * once: clients open the stream first and wait for them before they send.
 */
export async function streamEvents(
  deps: Deps,
  c: RestContext,
  sessionId: string,
  deltas: ReadonlySet<string>,
): Promise<Response> {
  const ended = AbortSignal.any([c.req.raw.signal, deps.streams.shutdown]);
  const call: CallOptions = { ...c.get("call"), signal: ended };
  // Before the headers: an unknown session is a 404, and what is sent after them must not be missed.
  const caller = c.get("caller").subject;
  const sent = deps.streams.opened(sessionId, caller);
  let isClosed = false;
  const close = () => {
    if (!isClosed) deps.streams.closed(sessionId, caller);
    isClosed = true;
  };
  let after: bigint;
  try {
    after = await startOfTurn(deps, sessionId, sent, call);
  } catch (error) {
    close();
    throw error;
  }
  const encoder = new TextEncoder();
  const frames = framesOf(deps, sessionId, after, deltas, call);
  let pings: NodeJS.Timeout | undefined;
  const finish = () => {
    clearInterval(pings);
    close();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // The first bytes take the headers along.
      controller.enqueue(encoder.encode(": open\n\n"));
      pings = setInterval(() => {
        // A client that does not read needs no sign of life.
        if ((controller.desiredSize ?? 0) > 0)
          controller.enqueue(encoder.encode(frame("ping", { type: "ping" })));
      }, PING_MS);
    },
    async pull(controller) {
      try {
        const next = await frames.next();
        if (!next.done) return controller.enqueue(encoder.encode(next.value));
        finish();
        controller.close();
      } catch (error) {
        finish();
        if (!ended.aborted)
          deps.log.warn({ err: error, session_id: sessionId }, "an event stream was given up");
        controller.close();
      }
    },
    async cancel() {
      finish();
      await frames.return(undefined);
    },
  });
  return new Response(body, { headers: { ...HEADERS, "request-id": c.get("requestId") } });
}

/** Position before the first event to deliver: that of the turn in progress, of a send nobody saw, or the head. */
async function startOfTurn(
  { sessions }: Deps,
  sessionId: string,
  sent: bigint | undefined,
  call: CallOptions,
): Promise<bigint> {
  const { session } = await sessions.getSession({ sessionId }, call);
  const slice = {
    sessionId,
    beforePosition: 0n,
    maxBytes: 0,
    aroundEventId: "",
    aroundCount: 0,
    fromEventId: "",
    toEventId: "",
    limit: 1,
  };
  const idle = await sessions.getEvents(
    { ...slice, afterPosition: 0n, types: ["session.status_idle"], order: 2 },
    call,
  );
  const idleAt = idle.events[0]?.position ?? 0n;
  const begun = await sessions.getEvents(
    { ...slice, afterPosition: idleAt, types: ["user.message", "session.status_running"], order: 1 },
    call,
  );
  const head = [session?.headPosition ?? 0n, idle.headPosition, begun.headPosition].reduce((a, b) =>
    a < b ? a : b,
  );
  const turn = begun.events[0] ? begun.events[0].position - 1n : head;
  return sent !== undefined && sent - 1n < turn ? sent - 1n : turn;
}

/** Frames of a session's events after a position; goes on by itself where the log was away for a moment. */
async function* framesOf(
  deps: Deps,
  sessionId: string,
  after: bigint,
  deltas: ReadonlySet<string>,
  call: CallOptions,
): AsyncGenerator<string, void, undefined> {
  const previews = new PreviewFrames(deltas);
  let position = after;
  let lostAt = 0;
  while (!call.signal?.aborted) {
    try {
      const request = {
        sessionId,
        afterPosition: position,
        types: [],
        includePreviews: deltas.size > 0,
        fromHead: false,
      };
      for await (const message of deps.sessions.watchEvents(request, call)) {
        lostAt = 0;
        if (message.position > position) position = message.position;
        yield* framesOfMessage(deps, sessionId, message, previews, call);
      }
      // The session was deleted or is over.
      return;
    } catch (error) {
      if (call.signal?.aborted) return;
      if (!(error instanceof GanglionError) || error.code !== "UNAVAILABLE") throw error;
      lostAt ||= Date.now();
      if (Date.now() - lostAt > PATIENCE_MS) throw error;
      await wait(RETRY_MS);
    }
  }
}

async function* framesOfMessage(
  deps: Deps,
  sessionId: string,
  { message }: WatchEventsResponse,
  previews: PreviewFrames,
  call: CallOptions,
): AsyncGenerator<string, void, undefined> {
  if (message?.$case === "preview") {
    const value = previews.next(message.value as Preview);
    if (value) yield frame(value.type, value);
    return;
  }
  if (message?.$case !== "event") return;
  const event = message.value;
  previews.stored(event.id);
  // What was stored before this stream began may have been read by the model already.
  const taken = isClientEvent(event.type)
    ? await takenTimes(deps.sessions, sessionId, [event], call)
    : () => null;
  const [whole = event] = await restoreLargeBlocks(deps.sessions, sessionId, [event], call);
  const json = eventToJson(whole, taken(event));
  if (json) yield frame(event.type, json);
}

function frame(name: string, value: unknown): string {
  return `event: ${name}\ndata: ${writeJson(value)}\n\n`;
}
