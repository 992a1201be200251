import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Event } from "../../gen/ganglion/types/v1/event.ts";
import { pause } from "../driver/pause.ts";
import type { AppendOptions, EventLog, HeldLease, NewEvent } from "../ports/event-log.ts";
import type { SessionClient } from "./service-clients.ts";

// An append takes at most 100 events and 3 MiB; some room for what the log's service adds.
const MAX_EVENTS = 100;
const MAX_BYTES = 2_900_000;
const READ_LIMIT = 1000;
const APPEND_TIMEOUT_MS = 10_000;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 2000;

// Nothing can be said about what became of the call; the same ids make it safe to try again.
const SILENT = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/** The log over gRPC. Reads and appends go on through restarts of the session service, until the signal. */
export function createGrpcEventLog(client: SessionClient): EventLog {
  return {
    async *read(sessionId, after, signal) {
      for (let position = after; ; ) {
        const page = await untilAnswered(signal, () =>
          client.getEvents(
            {
              sessionId,
              afterPosition: position,
              beforePosition: 0n,
              limit: READ_LIMIT,
              maxBytes: 0,
              types: [],
              order: 1,
              aroundEventId: "",
              aroundCount: 0,
              fromEventId: "",
              toEventId: "",
            },
            { signal },
          ),
        );
        yield* page.events;
        position = page.events.at(-1)?.position ?? position;
        if (!page.hasMore) return;
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
  };
}

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
