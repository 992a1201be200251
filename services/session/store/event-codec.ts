import { hash } from "node:crypto";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { newId } from "../../common/ids/new-id.ts";
import { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import { Event, StopReason } from "../../gen/ganglion/types/v1/event.ts";
import type { Append, NewEvent, RowEffect } from "../domain/append.ts";
import { DIGEST_BYTES } from "../domain/payload-rules.ts";
import { type Effect, effectOf } from "../domain/row-effect.ts";
import type { Fresh } from "./append-store.ts";
import type { Row } from "./database.ts";
import { toTimestamp } from "./pg-time.ts";

// One for all: a writer keeps its buffer, and a new one grows by copying.
const writer = new BinaryWriter();
// An event of which nothing but its body is encoded.
const bare = Event.fromPartial({});

/** encodeNewEvent makes of one event what encodeNewEvents makes of several. */
export function encodeNewEvent(event: Event, type: string): NewEvent {
  return encodeNewEvents([event], [type])[0] as NewEvent;
}

/**
 * encodeNewEvents makes of events, whose types stand beside them, what is stored: of each its body alone, encoded, and a
 * digest over all that the appender chose. The traceparent is not part of it: a retry of the same event may come from
 * another span.
 */
export function encodeNewEvents(events: readonly Event[], types: readonly string[]): NewEvent[] {
  const heads = events.map((event, index) => digestHead(event, types[index] ?? ""));
  const records = new BinaryReader(encodeRecords(events, heads));
  const bodies: Uint8Array[] = [];
  let digests = "";
  for (const head of heads) {
    const record = records.bytes();
    bodies.push(record.subarray(head.length));
    // As text it comes faster than as a buffer that the hash makes.
    digests += hash("sha256", record, "binary");
  }
  const allDigests = Buffer.from(digests, "binary");
  return events.map((event, index) => ({
    id: event.id || newId("sevt"),
    type: types[index] ?? "",
    threadId: event.threadId,
    traceparent: event.traceparent,
    mayIgnore: event.mayIgnore,
    body: bodies[index] as Uint8Array,
    digest: allDigests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES),
    effect: encodeEffect(effectOf(event.body)),
  }));
}

function digestHead({ threadId, mayIgnore }: Event, type: string): Uint8Array {
  return Buffer.from(`${type}\n${threadId}\n${mayIgnore}\n`);
}

// One piece of memory for all: of each event its length, then head and body side by side, as they are digested.
function encodeRecords(events: readonly Event[], heads: readonly Uint8Array[]): Uint8Array {
  try {
    for (const [index, { body }] of events.entries()) {
      bare.body = body;
      writer.fork().raw(heads[index] as Uint8Array);
      Event.encode(bare, writer).join();
    }
    return writer.finish();
  } catch (error) {
    // What was written of these must not begin the next.
    writer.finish();
    throw error;
  } finally {
    bare.body = undefined;
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
