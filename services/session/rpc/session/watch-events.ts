import { Violations } from "../../../common/errors/violations.ts";
import { serverStream } from "../../../common/grpc/handlers.ts";
import type {
  WatchEventsRequest,
  WatchEventsResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { positionAheadOfLog, sessionNotFound } from "../../domain/errors.ts";
import { deletedEvent, type SessionFeed } from "../../live/session-feed.ts";
import { Watcher } from "../../live/watcher.ts";
import type { Slice } from "../../ports/log-store.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkTypes } from "./get-events.ts";

const PAGE_EVENTS = 200;
const PAGE_BYTES = 1 << 20;

/** Streams a log from a position on, stored events first, then live ones. */
export const watchEvents = (deps: Deps) =>
  serverStream<WatchEventsRequest, WatchEventsResponse>(
    async function* (request, ctx) {
      checkWatchEvents(request);
      const scope = scopeOf(callerOf(ctx));
      const first = await read(deps, request.sessionId, scope, request.afterPosition, null, 1, ctx.signal);
      if (!first) throw sessionNotFound(request.sessionId);
      if (request.afterPosition > first.head) throw positionAheadOfLog(first.head);
      const start = request.fromHead ? first.head : request.afterPosition;
      const watcher = new Watcher(
        {
          types: request.types.length > 0 ? new Set(request.types) : null,
          includePreviews: request.includePreviews,
        },
        start,
      );
      yield checkpoint(start);
      yield* follow(deps, request.sessionId, first.workspaceId, watcher, ctx.signal);
    },
    { resume: ({ position }) => ({ position: position.toString() }) },
  );

function checkWatchEvents(request: WatchEventsRequest): void {
  const violations = new Violations();
  checkId(violations, "session_id", request.sessionId);
  violations.integer("after_position", request.afterPosition, { min: 0n });
  checkTypes(violations, request.types);
  if (request.fromHead) {
    violations.check(
      request.afterPosition === 0n,
      "after_position",
      "cannot be used together with from_head",
    );
  }
  violations.throwIfAny();
}

async function* follow(
  deps: Deps,
  sessionId: string,
  workspaceId: string,
  watcher: Watcher,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  let feed: SessionFeed | undefined;
  let stopPreviews: (() => void) | undefined;
  try {
    for (;;) {
      const end = yield* catchUp(deps, sessionId, workspaceId, watcher, signal);
      if (end === "over") return;
      feed = deps.feeds.of(sessionId, workspaceId);
      if (feed.attach(watcher)) break;
    }
    if (watcher.hasPreviews) {
      stopPreviews = deps.remotePreviews.want(sessionId);
      void deps.publications.welcome(sessionId, watcher);
    }
    for (;;) {
      const next = await watcher.next(deps.quietMs, signal);
      if (next === undefined) return;
      yield next === "quiet" ? checkpoint(watcher.position) : next;
    }
  } finally {
    stopPreviews?.();
    if (feed) {
      feed.detach(watcher);
      deps.feeds.release(feed);
    }
  }
}

// Reads pages only as fast as the reader takes them, until the newest event.
async function* catchUp(
  deps: Deps,
  sessionId: string,
  workspaceId: string,
  watcher: Watcher,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse, "caught_up" | "over"> {
  for (;;) {
    const slice = await read(
      deps,
      sessionId,
      workspaceId,
      watcher.position,
      watcher.types,
      PAGE_EVENTS,
      signal,
    );
    if (!slice) {
      yield { position: watcher.position, message: { $case: "event", value: deletedEvent() } };
      return "over";
    }
    for (const event of slice.events) {
      watcher.moveTo(event.position);
      yield { position: event.position, message: { $case: "event", value: event } };
    }
    if (slice.hasMore) continue;
    watcher.moveTo(slice.head);
    return slice.status === "terminated" ? "over" : "caught_up";
  }
}

function read(
  deps: Deps,
  sessionId: string,
  scope: string | null,
  after: bigint,
  types: readonly string[] | null,
  limit: number,
  signal: AbortSignal,
): Promise<Slice | undefined> {
  const bounds = { before: null, isDescending: false, limit, maxBytes: PAGE_BYTES };
  return deps.log.read({ sessionId, scope, after, types, ...bounds }, signal);
}

function checkpoint(position: bigint): WatchEventsResponse {
  return { position, message: { $case: "checkpoint", value: {} } };
}
