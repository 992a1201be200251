import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type {
  AppendOptions,
  EventLog,
  HeldLease,
  NewEvent,
} from "../../../../services/harness/ports/event-log.ts";
import { toEvents, type WrittenEvent } from "../../../golden/load-log.ts";

/** One session's log in memory, as strict about epochs and positions as the real one. */
export class MemoryLog implements EventLog {
  readonly events: Event[] = [];
  epoch = 0n;
  /** Runs before each append of a harness; may throw, or append as a client. */
  beforeAppend: ((events: readonly NewEvent[]) => void) | undefined;
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
      } else await this.changed(signal);
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
    for (const wake of [...this.#waiting]) wake();
  }
}

function typeOf(event: Event): string {
  return event.type !== "" ? event.type : (event.body?.$case ?? "");
}

function refused(code: "ABORTED" | "FAILED_PRECONDITION", reason: string): GanglionError {
  return new GanglionError({ code, reason, message: reason });
}
