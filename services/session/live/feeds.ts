import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { LogStore } from "../ports/log-store.ts";
import { SessionFeed } from "./session-feed.ts";

// How often the heads of all watched sessions are looked at when hints arrive, and when they do not.
const LOOK_MS = 5_000;
const LOOK_WITHOUT_HINTS_MS = 500;

/** What the feeds read. */
export interface FeedSource extends Pick<LogStore, "read"> {
  heads(sessionIds: readonly string[]): Promise<Map<string, { head: bigint }>>;
}

/** All sessions that are watched through this process. */
export class Feeds {
  readonly #source: FeedSource;
  readonly #hasHints: () => boolean;
  readonly #feeds = new Map<string, SessionFeed>();
  #timer: NodeJS.Timeout | undefined;

  constructor(source: FeedSource, hasHints: () => boolean) {
    this.#source = source;
    this.#hasHints = hasHints;
    this.#schedule();
  }

  /** The feed of a session, made when there is none. */
  of(sessionId: string, workspaceId: string): SessionFeed {
    const feed = this.#feeds.get(sessionId) ?? new SessionFeed(sessionId, workspaceId, this.#source);
    this.#feeds.set(sessionId, feed);
    return feed;
  }

  /** Forgets a feed that nobody watches any more. */
  release(feed: SessionFeed): void {
    if (feed.isIdle && this.#feeds.get(feed.sessionId) === feed) this.#feeds.delete(feed.sessionId);
  }

  /** Something may have happened to a session. */
  wake(sessionId: string): void {
    this.#feeds.get(sessionId)?.wake();
  }

  /** This process appended something that is durable now; `events` is asked only where somebody watches. */
  offer(sessionId: string, events: () => readonly Event[], bytesEach: number): void {
    const feed = this.#feeds.get(sessionId);
    if (feed && !feed.isIdle) feed.offer(events(), bytesEach);
  }

  /** Something may have happened to any session. */
  wakeAll(): void {
    for (const feed of this.#feeds.values()) feed.wake();
  }

  /** Hands a preview to those who watch the session through this process. */
  preview(sessionId: string, preview: Preview): void {
    this.#feeds.get(sessionId)?.preview(preview);
  }

  /** Stops looking. */
  close(): void {
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    const base = this.#hasHints() ? LOOK_MS : LOOK_WITHOUT_HINTS_MS;
    this.#timer = setTimeout(() => void this.#look(), base * (0.75 + Math.random() / 2));
    this.#timer.unref();
  }

  // The backstop for hints that never came: one statement for all watched sessions.
  async #look(): Promise<void> {
    try {
      const ids = [...this.#feeds.keys()];
      if (ids.length > 0) {
        const heads = await this.#source.heads(ids);
        for (const [id, feed] of this.#feeds) {
          if (heads.get(id)?.head !== feed.position) feed.wake();
        }
      }
    } catch {
      // The database is away; look again later.
    } finally {
      this.#schedule();
    }
  }
}
