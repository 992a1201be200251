import { createHash } from "node:crypto";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { PayloadRef } from "../../../../services/gen/ganglion/types/v1/content.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type {
  AppendOptions,
  EventLog,
  HeldLease,
  NewEvent,
  Slice,
  StoredCheckpoint,
} from "../../../../services/harness/ports/event-log.ts";
import { toEvents, type WrittenEvent } from "../../../golden/load-log.ts";

/** One session's log in memory, as strict about epochs and positions as the real one. */
export class MemoryLog implements EventLog {
  readonly events: Event[] = [];
  epoch = 0n;
  /** Runs before each append of a harness; may throw, or append as a client. */
  beforeAppend: ((events: readonly NewEvent[]) => void) | undefined;
  readonly payloads = new Map<string, Buffer>();
  checkpoint: StoredCheckpoint | undefined;
  /** Up to where a watcher has taken everything in. */
  watched = 0n;
  readonly #waiting = new Set<() => void>();

  constructor(written: readonly WrittenEvent[]) {
    for (const event of toEvents(written)) this.#push(event);
  }

  get head(): bigint {
    return BigInt(this.events.length);
  }

  lease(): HeldLease {
    this.epoch += 1n;
    this.client("ganglion.lease_acquired", { epoch: String(this.epoch), owner: "spiffe://x" });
    return { sessionId: "sesn_1", workspaceId: "wrkspc_default", epoch: this.epoch, headPosition: this.head };
  }

  /** Appends as a client or as the session service would. */
  client(type: string, body: Record<string, unknown>, id = `sevt_client_${this.events.length + 1}`): void {
    const [event] = toEvents([{ id, type, body }]);
    this.#push({ ...event!, position: this.head + 1n });
  }

  types(): string[] {
    return this.events.map((event) => typeOf(event));
  }

  /** Bodies of one kind, in order. */
  all<K extends NonNullable<Event["body"]>["$case"]>(
    kind: K,
  ): Extract<NonNullable<Event["body"]>, { $case: K }>["value"][] {
    return this.events.flatMap(({ body }) => (body?.$case === kind ? [body.value as never] : []));
  }

  async *read(_sessionId: string, after: bigint): AsyncGenerator<Event> {
    yield* this.events.slice(Number(after));
  }

  async *watch(_sessionId: string, after: bigint, signal: AbortSignal): AsyncGenerator<Event> {
    let position = after;
    while (!signal.aborted) {
      const event = this.events[Number(position)];
      if (event) {
        position += 1n;
        yield event;
      } else {
        if (position > this.watched) {
          this.watched = position;
          this.#wake();
        }
        await this.changed(signal);
      }
    }
  }

  async append(lease: HeldLease, events: readonly NewEvent[], options: AppendOptions): Promise<Event[]> {
    await Promise.resolve();
    options.signal?.throwIfAborted();
    this.beforeAppend?.(events);
    if (lease.epoch !== this.epoch) throw refused("FAILED_PRECONDITION", "STALE_EPOCH");
    if (options.expectedPosition !== undefined && options.expectedPosition !== this.head) {
      throw refused("ABORTED", "POSITION_CONFLICT");
    }
    return events.map((event) => {
      // Through the wire form, as it would come back.
      const bytes = Event.encode(Event.fromPartial({ id: event.id })).finish();
      const stored = {
        ...Event.decode(bytes),
        body: event.body,
        position: this.head + 1n,
        epoch: lease.epoch,
      };
      this.#push(stored);
      return stored;
    });
  }

  async slice(_sessionId: string, slice: Slice): Promise<{ events: Event[]; hasMore: boolean }> {
    const at = this.events.findIndex((event) => event.id === slice.aroundEventId);
    const half = Math.floor(slice.limit / 2);
    const found = this.events.filter(
      (event, i) =>
        event.position > slice.afterPosition &&
        (slice.beforePosition === 0n || event.position < slice.beforePosition) &&
        (slice.types.length === 0 || slice.types.includes(dotted(event))) &&
        (slice.aroundEventId === "" || Math.abs(i - at) <= half),
    );
    const ordered = slice.isNewestFirst ? found.toReversed() : found;
    return { events: ordered.slice(0, slice.limit), hasMore: ordered.length > slice.limit };
  }

  async readPayload(_sessionId: string, ref: PayloadRef): Promise<Uint8Array> {
    const bytes = this.payloads.get(ref.payloadId);
    if (!bytes) throw refused("NOT_FOUND", "PAYLOAD_NOT_FOUND");
    return bytes;
  }

  async writePayload(
    _lease: HeldLease,
    { bytes, contentType, excerpt }: { bytes: Uint8Array; contentType: string; excerpt: string },
  ): Promise<PayloadRef> {
    const payloadId = `pld_${this.payloads.size + 1}`;
    this.payloads.set(payloadId, Buffer.from(bytes));
    const sha256 = createHash("sha256").update(bytes).digest();
    return { payloadId, sizeBytes: BigInt(bytes.length), sha256, contentType, excerpt };
  }

  async readCheckpoint(): Promise<StoredCheckpoint | undefined> {
    return this.checkpoint;
  }

  async writeCheckpoint(_lease: HeldLease, _format: string, checkpoint: StoredCheckpoint): Promise<void> {
    this.checkpoint = checkpoint;
    this.#wake();
  }

  /** Resolves once the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.changed(AbortSignal.timeout(5000), true);
  }

  changed(signal: AbortSignal, isStrict = false): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#waiting.delete(done);
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = (): void => {
        this.#waiting.delete(done);
        if (isStrict) reject(new Error(`nothing came; the log has: ${this.types().join(" ")}`));
        else resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener("abort", onAbort);
    });
  }

  #push(event: Event): void {
    this.events.push(event);
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function typeOf(event: Event): string {
  return event.type !== "" ? event.type : (event.body?.$case ?? "");
}

/** The public name of a kind of event. */
function dotted(event: Event): string {
  if (event.type !== "") return event.type;
  const [head = "", ...rest] = (event.body?.$case ?? "")
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .split(" ");
  return `${head}.${rest.join("_")}`;
}

function refused(code: "ABORTED" | "FAILED_PRECONDITION" | "NOT_FOUND", reason: string): GanglionError {
  return new GanglionError({ code, reason, message: reason });
}
