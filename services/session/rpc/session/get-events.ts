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
    const bounded = request.aroundEventId === "" ? query : await around(deps, request, query, ctx.signal);
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
  const at = await deps.log.positionOf(query.sessionId, query.scope, request.aroundEventId, signal);
  if (at === undefined) {
    const exists = await deps.log.read({ ...query, limit: 1, maxBytes: 1 }, signal);
    if (!exists) throw sessionNotFound(query.sessionId);
    throw eventNotFound(request.aroundEventId);
  }
  const after = at - count - 1n;
  return {
    ...query,
    after: after < 0n ? 0n : after,
    before: at + count + 1n,
    limit: request.limit === 0 ? 201 : query.limit,
  };
}
