import { invalid } from "./refuse.ts";

/** Where a page of events ended. */
export interface EventCursor {
  readonly order: "asc" | "desc";
  readonly position: bigint;
}

/** writeCursor makes the opaque next_page of an event list. */
export function writeCursor(cursor: EventCursor): string {
  return Buffer.from(`${cursor.order}:${cursor.position}`).toString("base64url");
}

/** readCursor reads one; a cursor of the other order is refused. */
export function readCursor(text: string, order: "asc" | "desc"): EventCursor {
  const match = /^(asc|desc):([1-9]\d{0,17})$/.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (!match?.[2]) throw invalid("page", "is not a page of this list");
  if (match[1] !== order) throw invalid("page", "belongs to a list in another order");
  return { order, position: BigInt(match[2]) };
}
