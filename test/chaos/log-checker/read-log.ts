import { GetEventsRequest } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import type { Caller } from "../../contract/session/session-kit.ts";
import type { Stored } from "./history.ts";
import { seenOf } from "./recorder.ts";

/** readLog reads a session's whole log, once somebody answers. */
export async function readLog(caller: Caller, sessionId: string): Promise<Stored[]> {
  const log: Stored[] = [];
  for (let hasMore = true; hasMore; ) {
    const page = await caller.session.getEvents(
      GetEventsRequest.fromPartial({ sessionId, afterPosition: BigInt(log.length), limit: 1000 }),
      { waitForReady: true, timeoutMs: 20_000 },
    );
    for (const event of page.events) {
      log.push({
        ...seenOf(event),
        epoch: Number(event.epoch),
        isOwn: event.actor?.role === Role.ROLE_SESSION,
      });
    }
    hasMore = page.hasMore;
  }
  return log;
}
