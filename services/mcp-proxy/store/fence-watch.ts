import type { ClientConfig, Pool } from "pg";
import type { LiveSessions } from "../domain/live-sessions.ts";
import { listenForFences } from "./fence-listener.ts";
import { query } from "./query.ts";

/** A running watch. */
export interface FenceWatch {
  close(): Promise<void>;
}

/** What the watch needs. */
export interface FenceWatchOptions {
  pool: Pool;
  connection: ClientConfig;
  live: LiveSessions;
  /** A session's fence rose (null = any may have): forget what is kept for it, revoke what is queued. */
  onRaised: (sessionId: string | null) => void;
  /** Somebody at another replica wants a call given up; the name of the run. */
  onCancel: (runKey: string) => void;
  onTrouble: (error: Error) => void;
}

const POLL_MS = 1000;
const BLIND_MS = 4500;

const FIND = {
  name: "find_fences",
  text: `SELECT session_id, lowest_epoch, ended FROM proxy.fences WHERE session_id = ANY ($1)`,
};

/**
 * Cuts what runs when its session's fence rises: at once by notification, within a second by polling. When the
 * database cannot say for 4.5 s, everything is cut: within five seconds of the end of a session nothing may go on.
 */
export function watchFences({
  pool,
  connection,
  live,
  onRaised,
  onCancel,
  onTrouble,
}: FenceWatchOptions): FenceWatch {
  let seenAt = Date.now();
  const check = async (sessionIds: string[]) => {
    const askedAt = Date.now();
    if (sessionIds.length > 0) {
      const rows = await query<{ session_id: string; lowest_epoch: string; ended: boolean }>(pool, FIND, [
        sessionIds,
      ]);
      const fences = rows.map((row) => ({
        sessionId: row.session_id,
        lowestEpoch: BigInt(row.lowest_epoch),
        ended: row.ended,
      }));
      live.enforce(sessionIds, fences);
    }
    seenAt = askedAt;
  };
  let isChecking = false;
  const poll = async () => {
    const running = live.sessionIds();
    if (running.length === 0) seenAt = Date.now();
    if (Date.now() - seenAt > BLIND_MS) live.cutAll("DATABASE_UNAVAILABLE");
    if (isChecking) return;
    isChecking = true;
    await check(running)
      .catch((error) => onTrouble(error as Error))
      .finally(() => {
        isChecking = false;
      });
  };
  const timer = setInterval(() => void poll(), POLL_MS);
  timer.unref();
  const listener = listenForFences({
    connection,
    onRaised: (sessionId) => {
      onRaised(sessionId);
      const sessionIds = live.sessionIds().filter((id) => sessionId === null || id === sessionId);
      if (sessionIds.length > 0) check(sessionIds).catch((error) => onTrouble(error as Error));
    },
    onCancel,
    onLost: onTrouble,
  });
  return {
    close: async () => {
      clearInterval(timer);
      await listener.close();
    },
  };
}
