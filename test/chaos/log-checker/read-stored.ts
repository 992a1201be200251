import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import type { Caller } from "../../contract/session/session-kit.ts";
import { readLog } from "../../kit/read-log.ts";
import type { Stored } from "./history.ts";
import { seenOf } from "./recorder.ts";

const PATIENCE = { waitForReady: true, timeoutMs: 20_000 };

/** readStored reads a session's whole log, once somebody answers. */
export async function readStored(caller: Caller, sessionId: string): Promise<Stored[]> {
  const events = await readLog(sessionId, (request) => caller.session.getEvents(request, PATIENCE));
  return events.map((event) => ({
    ...seenOf(event),
    epoch: Number(event.epoch),
    isOwn: event.actor?.role === Role.ROLE_SESSION,
  }));
}
