import type { Lease, LogStart } from "../../../gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import type { Deps } from "../deps.ts";

const LIMIT = 1_000;
const MAX_BYTES = 1 << 20;
// With the largest event the answer is within what a message may have.
const MAX_CHECKPOINT_BYTES = 2 << 20;

/** What can be read of a session without holding it. */
type Found = Pick<LogStart, "checkpointPosition" | "checkpointData" | "events">;

/**
 * Reads where the next holder of a session begins, while the session is being taken: what was there before does not
 * change by that. It only saves time, so what goes wrong leaves it out.
 */
export class LogStartReader {
  readonly #deps: Pick<Deps, "log" | "checkpoints">;
  readonly #format: string;
  readonly #signal: AbortSignal;
  #last: { sessionId: string; found: Promise<Found | undefined> } | undefined;

  constructor(deps: Pick<Deps, "log" | "checkpoints">, format: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#format = format;
    this.#signal = signal;
  }

  /** Begins to read. */
  begin(sessionId: string): void {
    if (this.#format === "") return;
    this.#last = { sessionId, found: this.#read(sessionId).catch(() => undefined) };
  }

  /** What was read, and behind it the event that gave the lease, when nothing came in between. */
  async of(lease: Lease, acquired: Event | undefined): Promise<LogStart | undefined> {
    if (this.#last?.sessionId !== lease.sessionId) return undefined;
    const found = await this.#last.found;
    if (!found) return undefined;
    let end = found.events.at(-1)?.position ?? found.checkpointPosition;
    const events = [...found.events];
    if (acquired && acquired.position === end + 1n) {
      events.push(acquired);
      end = acquired.position;
    }
    return { ...found, events, hasMore: end < lease.headPosition };
  }

  async #read(sessionId: string): Promise<Found | undefined> {
    const { log, checkpoints } = this.#deps;
    const kept = await checkpoints.get(sessionId, null, this.#format, this.#signal);
    if (!kept) return undefined;
    const { position, data } = kept === "none" ? { position: 0n, data: Buffer.alloc(0) } : kept;
    const start = { checkpointPosition: position, checkpointData: data };
    if (data.length > MAX_CHECKPOINT_BYTES) return { ...start, events: [] };
    const bounds = { before: null, types: null, isDescending: false, limit: LIMIT, maxBytes: MAX_BYTES };
    const slice = await log.read({ sessionId, scope: null, after: position, ...bounds }, this.#signal);
    return slice && { ...start, events: slice.events };
  }
}
