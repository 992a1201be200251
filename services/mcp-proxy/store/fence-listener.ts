import { Client, type ClientConfig } from "pg";
import { CANCEL_CHANNEL } from "./call-store.ts";

const CHANNEL = "ganglion_proxy_fence";

/** A running listener. */
export interface FenceListener {
  close(): Promise<void>;
}

/** How to listen. */
export interface FenceListenerOptions {
  connection: ClientConfig;
  /** A session's fence may have been raised; null = any may, because the connection was away. */
  onRaised: (sessionId: string | null) => void;
  /** Somebody wants a call given up; the name of the run. */
  onCancel: (runKey: string) => void;
  onLost: (error: Error) => void;
}

const RETRY_MS = 500;

/**
 * Listens for raised fences on a connection of its own. It is a hint that makes things fast; what must not be missed
 * is found by polling as well, and no call relies on either.
 */
export function listenForFences({
  connection,
  onRaised,
  onCancel,
  onLost,
}: FenceListenerOptions): FenceListener {
  let isClosed = false;
  let client: Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  const connect = async () => {
    const made = new Client({ ...connection, statement_timeout: 0 });
    client = made;
    let isOver = false;
    const lost = (error: Error) => {
      if (isOver) return;
      isOver = true;
      made.end().catch(() => {});
      if (isClosed) return;
      onLost(error);
      timer = setTimeout(() => void connect(), RETRY_MS);
    };
    made.on("error", lost);
    made.on("end", () => lost(new Error("connection ended")));
    made.on("notification", ({ channel, payload }) => {
      if (channel === CANCEL_CHANNEL) onCancel(payload ?? "");
      else onRaised(payload ?? null);
    });
    try {
      await made.connect();
      await made.query(`LISTEN ${CHANNEL}; LISTEN ${CANCEL_CHANNEL}`);
      onRaised(null);
    } catch (error) {
      lost(error as Error);
    }
  };
  void connect();
  return {
    close: async () => {
      isClosed = true;
      clearTimeout(timer);
      await client?.end().catch(() => {});
    },
  };
}
