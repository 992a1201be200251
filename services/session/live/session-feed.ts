import { newId } from "../../common/ids/new-id.ts";
import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { LogStore } from "../ports/log-store.ts";
import { keepNewest } from "./keep-newest.ts";
import type { Watcher } from "./watcher.ts";

const PAGE_EVENTS = 200;
const PAGE_BYTES = 1 << 20;
const REMEMBERED_IDS = 512;
const RETRY_MS = 500;

/**
 * The one reader of a session's live end in this process; it feeds all the session's watchers. Woken by a hint or by
 * a slow look, it reads by position from where it is, so a lost or early hint changes nothing but the delay. What this
 * process itself appended is handed on at once when it is what comes next.
 */
export class SessionFeed {
  readonly sessionId: string;
  readonly #workspaceId: string;
  readonly #log: Pick<LogStore, "read">;
  readonly #watchers = new Set<Watcher>();
  readonly #recentIds = new Set<string>();
  // Calls whose results were handed on.
  readonly #answered = new Set<string>();
  #position = 0n;
  #isPumping = false;
  #isWoken = false;

  constructor(sessionId: string, workspaceId: string, log: Pick<LogStore, "read">) {
    this.sessionId = sessionId;
    this.#workspaceId = workspaceId;
    this.#log = log;
  }

  /** Everything up to here was handed to the watchers. */
  get position(): bigint {
    return this.#position;
  }

  /** True when nobody watches. */
  get isIdle(): boolean {
    return this.#watchers.size === 0;
  }

  /**
   * Takes a watcher that has read up to its position by itself. False when the feed has gone on meanwhile and the
   * watcher must read some more; nothing happens between the two in this process, so there is no seam. [B043]
   */
  attach(watcher: Watcher): boolean {
    if (this.isIdle) this.#position = watcher.position;
    else if (watcher.position < this.#position) return false;
    this.#watchers.add(watcher);
    // Something may have been appended since the watcher's last read.
    this.wake();
    return true;
  }

  /** Lets a watcher go. */
  detach(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  /** There may be something new. */
  wake(): void {
    if (this.isIdle) return;
    this.#isWoken = true;
    if (!this.#isPumping) void this.#pump();
  }

  /**
   * Takes events that this process has just appended, and are durable, without reading them again. What does not follow
   * on the feed's position is read instead: something else was appended in between.
   */
  offer(events: readonly Event[], bytesEach: number): void {
    if (this.isIdle) return;
    if (events[0]?.position !== this.#position + 1n) {
      this.wake();
      return;
    }
    this.#hand(events, bytesEach);
  }

  /** Hands a preview to the watchers, unless its event, or for a tool's progress the call's result, is already stored. */
  preview(preview: Preview): void {
    const over = preview.message?.$case === "toolProgress" ? this.#answered : this.#recentIds;
    if (over.has(preview.eventId)) return;
    for (const watcher of this.#watchers) watcher.preview(preview);
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      while (this.#isWoken && !this.isIdle) {
        this.#isWoken = false;
        await this.#readOnce();
      }
    } catch {
      // The database is away: a hint, the slow look or this timer tries again.
      setTimeout(() => this.wake(), RETRY_MS).unref();
    } finally {
      this.#isPumping = false;
    }
  }

  async #readOnce(): Promise<void> {
    const after = this.#position;
    const slice = await this.#log.read({
      sessionId: this.sessionId,
      scope: this.#workspaceId,
      after,
      before: null,
      types: null,
      isDescending: false,
      limit: PAGE_EVENTS,
      maxBytes: PAGE_BYTES,
    });
    // The watchers changed meanwhile and stand elsewhere: what was read is not what comes next for them.
    if (after !== this.#position) {
      this.#isWoken = true;
      return;
    }
    if (!slice) {
      this.#finish(true);
      return;
    }
    const bytes = Math.ceil(slice.bytes / Math.max(1, slice.events.length));
    this.#hand(slice.events, bytes);
    if (slice.hasMore) this.#isWoken = true;
    else if (slice.status === "terminated") this.#finish(false);
  }

  #hand(events: readonly Event[], bytesEach: number): void {
    for (const event of events) {
      this.#recentIds.add(event.id);
      if (event.body?.$case === "agentMcpToolResult") this.#answered.add(event.body.value.mcpToolUseId);
      this.#position = event.position;
      for (const watcher of this.#watchers) watcher.event(event, bytesEach);
    }
    keepNewest(this.#recentIds, REMEMBERED_IDS);
    keepNewest(this.#answered, REMEMBERED_IDS);
  }

  #finish(isDeleted: boolean): void {
    for (const watcher of this.#watchers) {
      if (isDeleted) watcher.deleted(deletedEvent());
      watcher.end();
    }
    this.#watchers.clear();
  }
}

/** The event that only streams ever see: the session is gone. */
export function deletedEvent(): Event {
  return Event.fromPartial({
    id: newId("sevt"),
    type: "session.deleted",
    body: { $case: "sessionDeleted", value: {} },
  });
}
