import { EventEmitter, once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { type Implementation, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import {
  type EmitEventsRequest,
  type GetEventsRequest,
  type Preview,
  Session,
  SessionServiceService,
  type WatchEventsRequest,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { implementSome } from "./gateway-kit.ts";

const AT = { seconds: 1_700_000_000n, nanos: 0 };

/** An event at that position of a log. */
export function event(position: bigint, type: string, body: NonNullable<Event["body"]>): Event {
  return Event.fromPartial({ id: `sevt_${position}`, position, createTime: AT, type, body });
}

/** A block of text. */
export function text(value: string) {
  return {
    type: "text",
    data: { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text: value })) },
  };
}

/** What a user said. */
export const userMessage = (position: bigint, said: string) =>
  event(position, "user.message", { $case: "userMessage", value: { content: [text(said)] } });

/** The end of a turn. */
export const idle = (position: bigint) =>
  event(position, "session.status_idle", {
    $case: "sessionStatusIdle",
    value: { stopReason: { type: 1, eventIds: [] }, stopDetails: undefined },
  });

/** A session service with the one session "sesn_1" and the log that a test gives it. */
export class PlayedLog {
  events: Event[] = [];
  /** Sent before each event, to those who asked for previews. */
  previews: Preview[] = [];
  readonly emitted: EmitEventsRequest[] = [];
  readonly watches: WatchEventsRequest[] = [];
  readonly #watched = new EventEmitter();

  /** Forgets everything. */
  clear(): void {
    this.events = [];
    this.previews = [];
    this.emitted.length = 0;
    this.watches.length = 0;
  }

  /** Resolves with the nth request for a stream, from 1. */
  async watch(nth: number): Promise<WatchEventsRequest> {
    for (;;) {
      const asked = this.watches[nth - 1];
      if (asked) return asked;
      await once(this.#watched, "watch");
    }
  }

  /** The methods of the service. */
  implementation(): Implementation {
    const previewsFor = (wanted: WatchEventsRequest) => (wanted.includePreviews ? this.previews : []);
    const watching = (wanted: WatchEventsRequest) => {
      this.watches.push(wanted);
      this.#watched.emit("watch");
      return this.events;
    };
    return implementSome(SessionServiceService, {
      getSession: unary(async ({ sessionId }) => {
        if (sessionId !== "sesn_1") {
          throw new GanglionError({
            code: "NOT_FOUND",
            reason: "SESSION_NOT_FOUND",
            message: "there is no such session",
          });
        }
        return {
          session: Session.fromPartial({
            id: sessionId,
            agentJson: Buffer.from("{}"),
            createTime: AT,
            headPosition: this.#head,
          }),
        };
      }),
      getEvents: unary(async (wanted: GetEventsRequest) => {
        const found = this.events
          .filter(({ position }) => position > wanted.afterPosition)
          .filter(({ position }) => wanted.beforePosition === 0n || position < wanted.beforePosition)
          .filter(({ type }) => wanted.types.length === 0 || wanted.types.includes(type));
        if (wanted.order === 2) found.reverse();
        const limit = wanted.limit || 100;
        return {
          events: found.slice(0, limit),
          headPosition: this.#head,
          hasMore: found.length > limit,
        };
      }),
      watchEvents: serverStream(async function* (
        wanted: WatchEventsRequest,
        ctx,
      ): AsyncGenerator<WatchEventsResponse> {
        for (const one of watching(wanted)) {
          if (one.position <= wanted.afterPosition) continue;
          for (const value of previewsFor(wanted))
            yield { position: one.position - 1n, message: { $case: "preview", value } };
          yield { position: one.position, message: { $case: "event", value: one } };
        }
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
      }),
      emitEvents: unary(async (wanted: EmitEventsRequest) => {
        this.emitted.push(wanted);
        const head = this.#head;
        const stored = wanted.events.map(({ id }, index) => {
          return { eventId: id, position: head + BigInt(index) + 1n, createTime: AT, isDuplicate: false };
        });
        return { stored, headPosition: head + BigInt(stored.length) };
      }),
    });
  }

  get #head(): bigint {
    return this.events.at(-1)?.position ?? 0n;
  }
}

/** openStream opens the REST stream of that session and resolves with its response as soon as the headers are there. */
export async function openStream(rest: string, key: string, query = ""): Promise<IncomingMessage> {
  const url = `${rest}/v1/sessions/sesn_1/events/stream${query}`;
  const sent = request(url, { headers: { authorization: `Bearer ${key}` } });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}
