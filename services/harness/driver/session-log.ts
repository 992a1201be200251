import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { PayloadRef } from "../../gen/ganglion/types/v1/content.ts";
import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { fold } from "../domain/fold.ts";
import { emptyState, type SessionState } from "../domain/session-state.ts";
import type { EventLog, HeldLease, NewEvent } from "../ports/event-log.ts";
import { loadCheckpoint } from "./checkpoints.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";

/**
 * The log of one session as its driver sees it: folded up to a position, kept fresh by a watch, written under the
 * lease's epoch. Whatever the driver knows it knows from the events folded here (law L1).
 */
export class SessionLog {
  #state: SessionState = emptyState();
  readonly lease: HeldLease;
  readonly #port: EventLog;
  readonly #signal: AbortSignal;
  /** Events that came before their predecessors, by position. */
  readonly #early = new Map<bigint, Event>();
  readonly #listeners = new Set<() => void>();
  /** Called when an event of that id is folded that was appended under this lease. */
  readonly #awaited = new Map<string, () => void>();
  #lost: LeaseLost | undefined;

  constructor(port: EventLog, lease: HeldLease, signal: AbortSignal) {
    this.#port = port;
    this.lease = lease;
    this.#signal = signal;
  }

  /** What the log says, as far as it is folded. */
  get state(): SessionState {
    return this.#state;
  }

  /** Reads and folds what is there, from a kept fold on where there is one. Answers where that stood; 0 = none. */
  async load(): Promise<bigint> {
    const { start } = this.lease;
    this.lease.start = undefined;
    const kept = await loadCheckpoint(this.#port, this.lease, this.#signal, start);
    if (kept) this.#state = kept;
    const from = this.state.position;
    // What came with the lease goes on where its checkpoint ends, be that of use or not.
    const isOfUse = start !== undefined && (start.checkpoint?.position ?? 0n) === from;
    if (isOfUse) for (const event of start.events) this.#take(event);
    if (!isOfUse || start.hasMore) await this.#readOn();
    return from;
  }

  /** Keeps folding what others append, until the driver's signal. Rejects when the lease is lost. */
  async follow(): Promise<void> {
    const events = this.#port.watch(this.lease.sessionId, this.state.position, this.#signal);
    for await (const event of events) {
      this.#take(event);
      if (this.#lost) throw this.#lost;
    }
  }

  /** Appends all or nothing and folds it in. */
  async append(events: readonly NewEvent[], traceparent?: string): Promise<void> {
    await this.#append(events, traceparent);
  }

  /** Appends only if the log has nothing that is not folded yet; false = it has, decide again. */
  async appendAtHead(events: readonly NewEvent[], traceparent?: string): Promise<boolean> {
    try {
      await this.#append(events, traceparent, this.state.position);
      return true;
    } catch (error) {
      if (!GanglionError.is(error, "POSITION_CONFLICT")) throw error;
      await this.#catchUp();
      return false;
    }
  }

  /** Stores content beside the log, under the lease. */
  writePayload(
    content: { bytes: Uint8Array; contentType: string; excerpt: string },
    signal: AbortSignal,
  ): Promise<PayloadRef> {
    return this.#port.writePayload(this.lease, content, signal);
  }

  /** Calls back after every change until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #append(events: readonly NewEvent[], traceparent?: string, expectedPosition?: bigint): Promise<void> {
    if (this.#lost) throw this.#lost;
    const answered = this.#port
      .append(this.lease, events, {
        signal: this.#signal,
        ...(traceparent === undefined ? {} : { traceparent }),
        ...(expectedPosition === undefined ? {} : { expectedPosition }),
      })
      .catch((error: unknown) => {
        throw saysLeaseIsLost(error) ? new LeaseLost("the log refused the epoch", { cause: error }) : error;
      });
    // What the watch brings is in the log as well, and it may be here first.
    const last = events.at(-1)?.id ?? "";
    const seen = new Promise<undefined>((resolve) => this.#awaited.set(last, () => resolve(undefined)));
    const stored = await Promise.race([answered, seen]).finally(() => this.#awaited.delete(last));
    if (!stored) return void answered.catch(() => {});
    for (const event of stored) this.#take(event);
    // Somebody appended in between and the watch has not brought it yet.
    const end = stored.at(-1);
    if (end && this.state.position < end.position) await this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    await this.#readOn();
    if (this.#lost) throw this.#lost;
  }

  async #readOn(): Promise<void> {
    const events = this.#port.read(this.lease.sessionId, this.state.position, this.#signal);
    for await (const event of events) this.#take(event);
  }

  #take(event: Event): void {
    if (event.position <= this.state.position) return;
    this.#early.set(event.position, event);
    let next = this.#early.get(this.state.position + 1n);
    if (!next) return;
    while (next) {
      this.#early.delete(next.position);
      fold(this.state, next);
      // A client chooses ids too, and may have seen one in a preview.
      if (next.epoch === this.lease.epoch) this.#awaited.get(next.id)?.();
      const body = next.body;
      if (body?.$case === "ganglionLeaseAcquired" && body.value.epoch > this.lease.epoch) {
        this.#lost = new LeaseLost("the session was taken over");
      }
      next = this.#early.get(this.state.position + 1n);
    }
    for (const listener of this.#listeners) listener();
  }
}
