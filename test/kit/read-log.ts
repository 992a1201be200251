import {
  GetEventsRequest,
  type GetEventsResponse,
} from "../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";

/** readLog reads a session's whole log, page by page. */
export async function readLog(
  sessionId: string,
  getEvents: (request: GetEventsRequest) => Promise<GetEventsResponse>,
): Promise<Event[]> {
  const events: Event[] = [];
  for (let hasMore = true; hasMore; ) {
    const afterPosition = events.at(-1)?.position ?? 0n;
    const page = await getEvents(GetEventsRequest.fromPartial({ sessionId, afterPosition, limit: 1000 }));
    events.push(...page.events);
    hasMore = page.hasMore;
  }
  return events;
}
