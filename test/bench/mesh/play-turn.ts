import type { MeshClient } from "../../../services/common/grpc/create-client.ts";
import {
  EmitEventsRequest,
  type SessionServiceService,
  WatchEventsRequest,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";

const TURN_TIMEOUT_MS = 60_000;

/**
 * playTurn sends a user.message to an idle session and resolves with all that the log stored up to the end of the turn.
 * `see` looks at each message of the watch as it comes, previews included.
 */
export async function playTurn(
  log: MeshClient<typeof SessionServiceService>,
  sessionId: string,
  text: string,
  see?: (message: WatchEventsResponse) => unknown,
): Promise<Event[]> {
  const request = WatchEventsRequest.fromPartial({
    ...{ sessionId, fromHead: true, includePreviews: see !== undefined },
  });
  const signal = AbortSignal.timeout(TURN_TIMEOUT_MS);
  const events: Event[] = [];
  let isSent = false;
  for await (const answer of log.watchEvents(request, { signal })) {
    if (!isSent) {
      isSent = true;
      await log.emitEvents(EmitEventsRequest.fromPartial({ sessionId, events: [userMessage(text)] }));
    }
    await see?.(answer);
    if (answer.message?.$case !== "event") continue;
    const event = answer.message.value;
    if (event.body?.$case === "sessionError")
      throw new Error(`session ${sessionId} failed in a turn: ${event.body.value.message}`);
    events.push(event);
    if (event.type === "session.status_idle") return events;
  }
  throw new Error(`session ${sessionId} did not finish its turn`);
}

/** createdAtMs is when the log stored an event, in milliseconds of the wall clock. */
export function createdAtMs({ createTime }: Event): number {
  if (!createTime) throw new Error("an event has no time");
  return Number(createTime.seconds) * 1000 + createTime.nanos / 1e6;
}

/** A user.message without an id. */
export function userMessage(text: string): Event {
  const data = { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text })) };
  return Event.fromPartial({
    body: { $case: "userMessage", value: { content: [{ type: "text", data }] } },
  });
}
