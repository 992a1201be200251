import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { Append, Appended, Status } from "../domain/append.ts";

/** What a slice selects. Positions are exclusive bounds; null = open. */
export interface SliceQuery {
  readonly sessionId: string;
  readonly scope: string | null;
  readonly after: bigint;
  readonly before: bigint | null;
  readonly types: readonly string[] | null;
  readonly isDescending: boolean;
  readonly limit: number;
  readonly maxBytes: number;
}

/** A slice of a log and where the log stood when it was read. */
export interface Slice {
  readonly workspaceId: string;
  readonly events: Event[];
  /** Upper bound of the encoded size of all events together. */
  readonly bytes: number;
  readonly head: bigint;
  readonly status: Status;
  readonly hasMore: boolean;
}

/** Reads and appends. */
export interface LogStore {
  /** Appends all events or none; throws the reason when it is refused. */
  append(append: Append, signal?: AbortSignal): Promise<Appended>;
  /** Reads a slice; undefined when the session does not exist in the scope. */
  read(query: SliceQuery, signal?: AbortSignal): Promise<Slice | undefined>;
  /** Position of the event with that id; undefined when the log has none. */
  positionOf(
    sessionId: string,
    scope: string | null,
    eventId: string,
    signal?: AbortSignal,
  ): Promise<bigint | undefined>;
}
