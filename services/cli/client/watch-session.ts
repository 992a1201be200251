import { setTimeout as wait } from "node:timers/promises";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { WatchEventsResponse } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Mesh } from "./connect-mesh.ts";

const PATIENCE_MS = 20_000;
const PAUSE_MS = 250;

/** watchSession yields a session's events after a position, and goes on where it was when a part was away for a moment. */
export async function* watchSession(
  { sessions }: Mesh,
  sessionId: string,
  after: bigint,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse, void, undefined> {
  let position = after;
  let lostAt = 0;
  while (!signal.aborted) {
    try {
      const request = {
        sessionId,
        afterPosition: position,
        types: [],
        includePreviews: false,
        fromHead: false,
      };
      for await (const message of sessions.watchEvents(request, { signal })) {
        lostAt = 0;
        if (message.position > position) position = message.position;
        yield message;
      }
      return;
    } catch (error) {
      const isAway = error instanceof GanglionError && error.code === "UNAVAILABLE";
      lostAt ||= Date.now();
      if (!isAway || Date.now() - lostAt > PATIENCE_MS) throw error;
      await wait(PAUSE_MS);
    }
  }
}
