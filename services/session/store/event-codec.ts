import { hash } from "node:crypto";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { newId } from "../../common/ids/new-id.ts";
import { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import { Event, StopReason } from "../../gen/ganglion/types/v1/event.ts";
import type { Append, NewEvent, RowEffect } from "../domain/append.ts";
import { type Effect, effectOf } from "../domain/row-effect.ts";
import type { Fresh } from "./append-store.ts";
import type { Row } from "./database.ts";
import { toTimestamp } from "./pg-time.ts";

const EMPTY = Event.fromPartial({});
// One for all: a writer keeps its buffer, and a new one grows by copying.
const writer = new BinaryWriter();
// Where head and body of an event lie side by side to be digested.
const scratch = Buffer.allocUnsafeSlow(64 << 10);

/**
 * encodeNewEvent makes of an event what is stored: its body alone, encoded, and a digest over all that the
 * appender chose. The traceparent is not part of it: a retry of the same event may come from another span.
 */
export function encodeNewEvent(event: Event, type: string): NewEvent {
  const body = encodeBody(event.body);
  return {
    id: event.id || newId("sevt"),
    type,
    threadId: event.threadId,
    traceparent: event.traceparent,
    mayIgnore: event.mayIgnore,
    body,
    digest: digestOf(`${type}\n${event.threadId}\n${event.mayIgnore}\n`, body),
    effect: encodeEffect(effectOf(event.body)),
  };
}

function digestOf(head: string, body: Uint8Array): Uint8Array {
  const headBytes = Buffer.byteLength(head);
  const size = headBytes + body.length;
  const whole = size <= scratch.length ? scratch.subarray(0, size) : Buffer.allocUnsafe(size);
  whole.write(head);
  whole.set(body, headBytes);
  // As text it comes faster than as a buffer that the hash makes.
  return Buffer.from(hash("sha256", whole, "binary"), "binary");
}

function encodeBody(body: Event["body"]): Uint8Array {
  try {
    return Event.encode({ ...EMPTY, body }, writer).finish();
  } catch (error) {
    // What was written of this one must not begin the next.
    writer.finish();
    throw error;
  }
}

/** decodeStoredEvent makes an event of its row. */
export function decodeStoredEvent(row: Row): Event {
  const event = Event.decode(row.body);
  event.id = row.event_id;
  event.position = row.position;
  event.createTime = toTimestamp(row.created_at);
  event.type = row.type;
  event.actor = { role: row.actor_role, subject: row.actor_subject };
  event.threadId = row.thread_id;
  event.epoch = row.epoch;
  event.traceparent = row.traceparent;
  event.mayIgnore = row.may_ignore;
  return event;
}

/** decodeFreshEvents makes of what was just appended the events that a read would give. */
export function decodeFreshEvents({ append, head, at }: Fresh): Event[] {
  const { events, actor, lease } = append;
  const base = head - BigInt(events.length);
  return events.map((event, index) =>
    freshEvent(event, actor, { position: base + BigInt(index + 1), at, epoch: lease?.epoch ?? 0n }),
  );
}

/** freshEvent makes of an event that was just appended what a read would give. */
export function freshEvent(
  event: NewEvent,
  actor: Append["actor"],
  { position, at, epoch = 0n }: { position: bigint; at: string; epoch?: bigint },
): Event {
  return decodeStoredEvent({
    body: event.body,
    event_id: event.id,
    position,
    created_at: at,
    type: event.type,
    actor_role: actor.role,
    actor_subject: actor.subject,
    thread_id: event.threadId,
    epoch,
    traceparent: event.traceparent,
    may_ignore: event.mayIgnore,
  });
}

/** encodeEffect makes of an effect what is stored. */
export function encodeEffect(effect: Effect | null): RowEffect | null {
  if (effect === null) return null;
  return {
    status: effect.status ?? null,
    runnable: effect.runnable ?? null,
    usage: effect.usage ? ModelUsage.encode(effect.usage).finish() : null,
    activeMs: effect.activeMs ?? null,
    stopReason: effect.stopReason ? StopReason.encode(effect.stopReason).finish() : null,
    listCost: effect.listCost ?? null,
    isBudgetPaused: effect.isBudgetPaused ?? null,
  };
}
