import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { GetEventsResponse } from "../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../gen/ganglion/types/v1/event.ts";
import { payloadKey } from "../domain/payload-contents.ts";
import { pause } from "../driver/pause.ts";
import type { AppendOptions, EventLog, HeldLease, NewEvent } from "../ports/event-log.ts";
import { BytesCache } from "./bytes-cache.ts";
import { readPayload, writePayload } from "./grpc-payloads.ts";
import type { SessionClient } from "./service-clients.ts";

// An append takes at most 100 events and 3 MiB; some room for what the log's service adds.
const MAX_EVENTS = 100;
const MAX_BYTES = 2_900_000;
const READ_LIMIT = 1000;
const APPEND_TIMEOUT_MS = 10_000;
// Contents of all sessions that this process drives.
const CACHED_BYTES = 64 << 20;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 2000;

// Nothing can be said about what became of the call; the same ids make it safe to try again.
const SILENT = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/** The log over gRPC. Reads and appends go on through restarts of the session service, until the signal. */
export function createGrpcEventLog(client: SessionClient): EventLog {
  const payloads = new BytesCache(CACHED_BYTES);
  return {
    async *read(sessionId, after, signal) {
      const pageAfter = (position: bigint): Promise<GetEventsResponse> =>
        untilAnswered(signal, () =>
          client.getEvents({ ...WHOLE, sessionId, afterPosition: position }, { signal }),
        );
      let next: Promise<GetEventsResponse> | undefined = pageAfter(after);
      while (next) {
        const page: GetEventsResponse = await next;
        const last = page.events.at(-1)?.position;
        // Asked for while the one before it is folded.
        next = page.hasMore && last !== undefined ? pageAfter(last) : undefined;
        // Whoever stops reading does not hear what became of it.
        next?.catch(() => {});
        yield* page.events;
      }
    },

    async *watch(sessionId, after, signal) {
      let position = after;
      for (let failures = 0; !signal.aborted; ) {
        try {
          const request = {
            sessionId,
            afterPosition: position,
            types: [],
            includePreviews: false,
            fromHead: false,
          };
          for await (const { message, position: at } of client.watchEvents(request, { signal })) {
            failures = 0;
            position = at;
            if (message?.$case === "event") yield message.value;
          }
          // The session is over, or the server ended the watch: look again, but not at once.
        } catch (error) {
          if (signal.aborted) return;
          if (GanglionError.is(error, "SESSION_NOT_FOUND")) throw error;
        }
        await pause(Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** failures++), signal);
      }
    },

    async append(lease, events, options) {
      const batches = split(events);
      const stored: Event[] = [];
      for (const batch of batches) {
        // More than one batch is not atomic; what belongs together is small enough for one.
        const expectedPosition = batches.length === 1 ? options.expectedPosition : undefined;
        stored.push(...(await appendBatch(client, lease, batch, { ...options, expectedPosition })));
      }
      return stored;
    },

    async slice(sessionId, slice, signal) {
      const isAround = slice.aroundEventId !== "";
      const { events, hasMore } = await client.getEvents(
        {
          ...WHOLE,
          sessionId,
          afterPosition: slice.afterPosition,
          beforePosition: slice.beforePosition,
          types: [...slice.types],
          order: slice.isNewestFirst ? 2 : 1,
          ...(isAround
            ? { aroundEventId: slice.aroundEventId, aroundCount: slice.limit }
            : { limit: slice.limit }),
        },
        { signal },
      );
      return { events, hasMore };
    },

    async readPayload(sessionId, ref, signal) {
      const key = payloadKey(ref);
      const known = payloads.get(key);
      if (known) return known;
      const bytes = await untilAnswered(signal, () => readPayload(client, sessionId, ref, signal));
      payloads.put(key, bytes);
      return bytes;
    },

    writePayload: (lease, content, signal) =>
      untilAnswered(signal, () => writePayload(client, lease, content, signal)),

    async readCheckpoint(sessionId, format, signal) {
      const { position, data } = await client.getCheckpoint({ sessionId, format }, { signal });
      return position > 0n ? { position, data } : undefined;
    },

    async writeCheckpoint({ sessionId, epoch }, format, { position, data }, signal) {
      await client.putCheckpoint({ sessionId, epoch, position, format, data: Buffer.from(data) }, { signal });
    },
  };
}

// Order 1: oldest first.
const WHOLE = {
  afterPosition: 0n,
  beforePosition: 0n,
  limit: READ_LIMIT,
  maxBytes: 0,
  types: [] as string[],
  order: 1 as const,
  aroundEventId: "",
  aroundCount: 0,
  fromEventId: "",
  toEventId: "",
};

async function appendBatch(
  client: SessionClient,
  lease: HeldLease,
  batch: readonly Event[],
  options: Omit<AppendOptions, "expectedPosition"> & { expectedPosition?: bigint | undefined },
): Promise<Event[]> {
  const { expectedPosition, traceparent = "" } = options;
  const signal = options.signal ?? new AbortController().signal;
  const events = batch.map((event) => ({ ...event, traceparent }));
  const answer = await untilAnswered(signal, () =>
    client.emitEvents(
      { sessionId: lease.sessionId, events, epoch: lease.epoch, expectedPosition },
      {
        signal,
        timeoutMs: APPEND_TIMEOUT_MS,
        parent: { signal, deadlineMs: Number.POSITIVE_INFINITY, traceparent },
      },
    ),
  );
  return events.map((event, i) => {
    const stored = answer.stored[i];
    if (!stored) throw new Error("the log did not say where an event is");
    return { ...event, position: stored.position, createTime: stored.createTime, epoch: lease.epoch };
  });
}

/** Calls again while nobody answers. Whether that is wise for ever is the lease's business, not the call's. */
async function untilAnswered<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await call();
    } catch (error) {
      const mayHelp = GanglionError.is(error) && SILENT.has(error.code);
      if (!mayHelp || signal.aborted) throw error;
      await pause(Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** failures), signal);
    }
  }
}

function split(events: readonly NewEvent[]): Event[][] {
  const batches: Event[][] = [];
  let size = 0;
  for (const { id, body } of events) {
    const event: Event = { ...EMPTY, id, body };
    const bytes = Event.encode(event).finish().length + 128;
    const last = batches.at(-1);
    if (last && last.length < MAX_EVENTS && size + bytes <= MAX_BYTES) {
      last.push(event);
      size += bytes;
    } else {
      batches.push([event]);
      size = bytes;
    }
  }
  return batches;
}

const EMPTY: Event = Event.fromPartial({});
