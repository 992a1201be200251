import type { CallOptions } from "../../common/grpc/create-client.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import { type EventCursor, readCursor, writeCursor } from "../domain/event-cursor.ts";
import { eventToJson, isClientEvent, isShown } from "../domain/event-to-json.ts";
import { limitOf, one, orderOf, type Query } from "../domain/page-query.ts";
import { invalid } from "../domain/refuse.ts";
import { compareTimes, fromRfc3339, toRfc3339 } from "../domain/timestamps.ts";
import { restoreLargeBlocks } from "./large-blocks.ts";
import type { RestDeps } from "./rest-deps.ts";

/** Query parameters of the event list. */
export const EVENT_LIST_KEYS = [
  "types",
  "order",
  "limit",
  "page",
  "created_at[gt]",
  "created_at[gte]",
  "created_at[lt]",
  "created_at[lte]",
];

const MAX_TYPES = 64;
const SLICE = 1000;
const REQUEST_START = "span.model_request_start";

type Sessions = RestDeps["sessions"];

/** listEvents answers one page of a session's public events. */
export async function listEvents(
  sessions: Sessions,
  sessionId: string,
  query: Query,
  call: CallOptions,
): Promise<{ data: unknown[]; next_page: string | null }> {
  const order = orderOf(query, "asc");
  const limit = limitOf(query, SLICE, SLICE);
  const page = one(query, "page");
  const types = [...(query.types ?? [])];
  if (types.length > MAX_TYPES) throw invalid("types", `must have at most ${MAX_TYPES} values`);
  const isWanted = timeFilter(query);
  const found: Event[] = [];
  let cursor: EventCursor | undefined = page === undefined ? undefined : readCursor(page, order);
  let hasMore = true;
  // What is hidden or filtered out does not count, so one slice of the log may not fill a page.
  while (found.length < limit && hasMore) {
    const slice = await sessions.getEvents(sliceRequest(sessionId, order, cursor, types), call);
    for (const event of slice.events) {
      if (found.length === limit) break;
      cursor = { order, position: event.position };
      if (isShown(event) && isWanted(event)) found.push(event);
    }
    const last = slice.events.at(-1);
    hasMore = slice.hasMore || (last !== undefined && cursor?.position !== last.position);
  }
  const takenAt = await takenTimes(sessions, sessionId, found, call);
  const whole = await restoreLargeBlocks(sessions, sessionId, found, call);
  const data = whole.map((event) => eventToJson(event, takenAt(event))).filter((json) => json !== undefined);
  return { data, next_page: hasMore && cursor ? writeCursor(cursor) : null };
}

function sliceRequest(
  sessionId: string,
  order: "asc" | "desc",
  cursor: EventCursor | undefined,
  types: string[],
) {
  const position = cursor?.position ?? 0n;
  return {
    sessionId,
    afterPosition: order === "asc" ? position : 0n,
    beforePosition: order === "desc" ? position : 0n,
    limit: SLICE,
    maxBytes: 0,
    types,
    order: order === "asc" ? (1 as const) : (2 as const),
    aroundEventId: "",
    aroundCount: 0,
    fromEventId: "",
    toEventId: "",
  };
}

/**
 * takenTimes finds out when a model request read what clients sent: the first start of one whose consumed position has
 * reached it.
 */
export async function takenTimes(
  sessions: Sessions,
  sessionId: string,
  events: readonly Event[],
  call: CallOptions,
): Promise<(event: Event) => string | null> {
  const positions = events.filter(({ type }) => isClientEvent(type)).map(({ position }) => position);
  if (positions.length === 0) return () => null;
  const sorted = positions.toSorted((a, b) => Number(a - b));
  const [first, last] = [sorted[0] as bigint, sorted.at(-1) as bigint];
  const starts: { consumed: bigint; at: string | null }[] = [];
  for (let after = first, more = true; more; ) {
    const slice = await sessions.getEvents(
      sliceRequest(sessionId, "asc", { order: "asc", position: after }, [REQUEST_START]),
      call,
    );
    for (const start of slice.events) {
      after = start.position;
      if (start.body?.$case !== "spanModelRequestStart") continue;
      starts.push({ consumed: start.body.value.consumedPosition, at: toRfc3339(start.createTime) });
    }
    more = slice.hasMore && (starts.at(-1)?.consumed ?? 0n) < last;
  }
  return (event) => starts.find(({ consumed }) => consumed >= event.position)?.at ?? null;
}

function timeFilter(query: Query): (event: Event) => boolean {
  const tests: ((at: Timestamp) => boolean)[] = [];
  const add = (name: string, test: (order: number) => boolean) => {
    const text = one(query, name);
    if (text === undefined) return;
    const bound = fromRfc3339(text, name);
    tests.push((at) => test(compareTimes(at, bound)));
  };
  add("created_at[gt]", (order) => order > 0);
  add("created_at[gte]", (order) => order >= 0);
  add("created_at[lt]", (order) => order < 0);
  add("created_at[lte]", (order) => order <= 0);
  return ({ createTime }) => createTime !== undefined && tests.every((test) => test(createTime));
}
