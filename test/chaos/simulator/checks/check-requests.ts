import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { fold } from "../../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../../services/harness/domain/project-request.ts";
import { emptyState } from "../../../../services/harness/domain/session-state.ts";
import { sha256 } from "../../../../services/harness/domain/sha256.ts";

/**
 * Every request that the log records is the one that the log gives: two folds of it, one of them of events that went
 * over the wire once more, build the same bytes, and the bytes that were sent have their digest.
 */
export function checkRequests(events: readonly Event[]): string[] {
  const faults: string[] = [];
  const one = emptyState();
  const other = emptyState();
  for (const event of events) {
    if (event.body?.$case === "spanModelRequestStart" && event.body.value.requestSha256.length > 0) {
      const { consumedPosition, requestSha256 } = event.body.value;
      const body = buildAt(events, consumedPosition, one);
      const again = buildAt(events, consumedPosition, other, overTheWire);
      if (!body.equals(again)) faults.push(`two folds up to ${consumedPosition} build two requests`);
      if (!sha256(body).equals(requestSha256)) {
        faults.push(`the request of ${event.position} is not the one that was sent`);
      }
    }
  }
  return faults;
}

function buildAt(
  events: readonly Event[],
  position: bigint,
  state: ReturnType<typeof emptyState>,
  pass: (event: Event) => Event = (event) => event,
): Buffer {
  for (const event of events.slice(Number(state.position), Number(position))) fold(state, pass(event));
  return projectRequest(state);
}

function overTheWire(event: Event): Event {
  return Event.decode(Event.encode(event).finish());
}
