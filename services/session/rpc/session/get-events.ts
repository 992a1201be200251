import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import {
  type GetEventsRequest,
  type GetEventsResponse,
  SortOrder,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { scopeOf } from "../../domain/caller.ts";
import { eventNotFound, positionAheadOfLog, sessionNotFound } from "../../domain/errors.ts";
import type { SliceQuery } from "../../ports/log-store.ts";
import { callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";

const MAX_PAGE_BYTES = 3 << 20;

/** Reads a slice of a log. */
export const getEvents = (deps: Deps) =>
  unary<GetEventsRequest, GetEventsResponse>(async (request, ctx) => {
    const scope = scopeOf(callerOf(ctx));
    const query = parseGetEvents(request, scope);
    const bounded =
      request.aroundEventId === ""
        ? await between(deps, request, query, ctx.signal)
        : await around(deps, request, query, ctx.signal);
    const slice = await deps.log.read(bounded, ctx.signal);
    if (!slice) throw sessionNotFound(request.sessionId);
    if (request.afterPosition > slice.head) throw positionAheadOfLog(slice.head);
    return { events: slice.events, headPosition: slice.head, hasMore: slice.hasMore };
  });

function parseGetEvents(request: GetEventsRequest, scope: string | null): SliceQuery {
  const {
    sessionId,
    afterPosition,
    beforePosition,
    limit,
    maxBytes,
    types,
    order,
    aroundEventId,
    aroundCount,
    fromEventId,
    toEventId,
  } = request;
  const violations = new Violations();
  checkId(violations, "session_id", sessionId);
  violations.integer("after_position", afterPosition, { min: 0n });
  violations.integer("before_position", beforePosition, { min: 0n });
  violations.integer("limit", limit, { min: 0, max: 1000 });
  violations.integer("max_bytes", maxBytes, { min: 0, max: MAX_PAGE_BYTES });
  checkTypes(violations, types);
  violations.check(
    order >= 0 && order <= SortOrder.SORT_ORDER_DESC,
    "order",
    "must be ascending or descending",
  );
  violations.integer("around_count", aroundCount, { min: 0, max: 100 });
  if (aroundEventId === "") violations.check(aroundCount === 0, "around_count", "needs around_event_id");
  else {
    checkId(violations, "around_event_id", aroundEventId);
    violations.check(afterPosition === 0n, "after_position", "cannot be used together with around_event_id");
    violations.check(
      beforePosition === 0n,
      "before_position",
      "cannot be used together with around_event_id",
    );
  }
  checkEnd(violations, "from_event_id", fromEventId, {
    around_event_id: aroundEventId !== "",
    after_position: afterPosition !== 0n,
  });
  checkEnd(violations, "to_event_id", toEventId, {
    around_event_id: aroundEventId !== "",
    before_position: beforePosition !== 0n,
  });
  violations.throwIfAny();
  return {
    sessionId,
    scope,
    after: afterPosition,
    before: beforePosition === 0n ? null : beforePosition,
    types: types.length > 0 ? types : null,
    isDescending: order === SortOrder.SORT_ORDER_DESC,
    limit: limit === 0 ? 100 : limit,
    maxBytes: maxBytes === 0 ? MAX_PAGE_BYTES : maxBytes,
  };
}

// An end of the slice that is named by its event, and what says the same already.
function checkEnd(violations: Violations, field: string, id: string, others: Record<string, boolean>): void {
  if (id === "") return;
  checkId(violations, field, id);
  for (const [other, isThere] of Object.entries(others))
    violations.check(!isThere, field, `cannot be used together with ${other}`);
}

/** Checks a filter of event types. */
export function checkTypes(violations: Violations, types: readonly string[]): void {
  violations.count("types", types.length, { max: 64 });
  types.slice(0, 64).forEach((type, index) => {
    violations.string(`types[${index}]`, type, {
      required: true,
      pattern: /^[a-z0-9_.]{1,64}$/,
      patternMeans: "a dotted type",
    });
  });
}

// Positions are dense, so that what surrounds an event is a range of them.
async function around(
  deps: Deps,
  request: GetEventsRequest,
  query: SliceQuery,
  signal: AbortSignal,
): Promise<SliceQuery> {
  const count = BigInt(request.aroundCount === 0 ? 10 : request.aroundCount);
  const at = await positionOf(deps, query, request.aroundEventId, signal);
  const after = at - count - 1n;
  return {
    ...query,
    after: after < 0n ? 0n : after,
    before: at + count + 1n,
    limit: request.limit === 0 ? 201 : query.limit,
  };
}

// From one event to another: both are in the slice.
async function between(
  deps: Deps,
  { fromEventId, toEventId }: GetEventsRequest,
  query: SliceQuery,
  signal: AbortSignal,
): Promise<SliceQuery> {
  const from = fromEventId === "" ? undefined : await positionOf(deps, query, fromEventId, signal);
  const to = toEventId === "" ? undefined : await positionOf(deps, query, toEventId, signal);
  return {
    ...query,
    after: from === undefined ? query.after : from - 1n,
    before: to === undefined ? query.before : to + 1n,
  };
}

async function positionOf(
  deps: Deps,
  { sessionId, scope, ...query }: SliceQuery,
  eventId: string,
  signal: AbortSignal,
): Promise<bigint> {
  const at = await deps.log.positionOf(sessionId, scope, eventId, signal);
  if (at !== undefined) return at;
  const exists = await deps.log.read({ ...query, sessionId, scope, limit: 1, maxBytes: 1 }, signal);
  throw exists ? eventNotFound(eventId) : sessionNotFound(sessionId);
}
