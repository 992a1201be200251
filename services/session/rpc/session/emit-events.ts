import { Violations } from "../../../common/errors/violations.ts";
import type { CallContext } from "../../../common/grpc/call-context.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  EmitEventsRequest,
  EmitEventsResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import type { Append, NewEvent } from "../../domain/append.ts";
import { type Caller, scopeOf } from "../../domain/caller.ts";
import { invalidField, tooLarge } from "../../domain/errors.ts";
import {
  checkBodies,
  checkEnvelopes,
  MAX_BATCH_BYTES,
  MAX_EVENT_BYTES,
  MAX_EVENTS,
} from "../../domain/events/check-events.ts";
import { type EventRules, typeForEmitter } from "../../domain/events/event-rules.ts";
import { encodeNewEvents } from "../../store/event-codec.ts";
import { toTimestamp } from "../../store/pg-time.ts";
import { actorOf, callerOf } from "../caller-of.ts";
import { checkId } from "../check-request.ts";
import type { Deps } from "../deps.ts";
import { checkPayloads } from "./check-payloads.ts";

/** Appends events. */
export const emitEvents = (deps: Deps) =>
  // In two parts: what waits for its turn to be stored is held once, in the form in which it will be.
  unary<EmitEventsRequest, EmitEventsResponse>((request, ctx) =>
    check(deps, request, ctx).then((append) => store(deps, append, ctx)),
  );

async function check(deps: Deps, request: EmitEventsRequest, ctx: CallContext): Promise<Append> {
  const append = parseEmitEvents(request, ctx, deps.rules);
  await checkPayloads(deps.payloads, append, request.events, ctx.signal);
  return append;
}

async function store(deps: Deps, append: Append, ctx: CallContext): Promise<EmitEventsResponse> {
  const done = await deps.log.append(append, ctx.signal);
  ctx.note({ position: done.head, events: append.events.length });
  return {
    stored: done.stored.map(({ eventId, position, at, isDuplicate }) => ({
      eventId,
      position,
      createTime: toTimestamp(at),
      isDuplicate,
    })),
    headPosition: done.head,
  };
}

function parseEmitEvents(request: EmitEventsRequest, ctx: CallContext, rules: EventRules): Append {
  const caller = callerOf(ctx);
  const { sessionId, events, expectedPosition = null } = request;
  const violations = new Violations();
  checkId(violations, "session_id", sessionId);
  violations.count("events", events.length, { min: 1, max: MAX_EVENTS });
  if (expectedPosition !== null) violations.integer("expected_position", expectedPosition, { min: 0n });
  if (caller.role !== "HARNESS")
    violations.check(request.epoch === undefined, "epoch", "is for harnesses only");
  violations.throwIfAny();
  const fresh = parseEvents("events", events, caller, rules);
  if (
    caller.role === "HARNESS" &&
    expectedPosition === null &&
    fresh.some(({ type }) => type === "session.status_idle")
  ) {
    // Input that came meanwhile must not be hidden behind the idle.
    throw invalidField("expected_position", "is required with session.status_idle");
  }
  return {
    sessionId,
    scope: scopeOf(caller),
    lease: leaseOf(caller, request.epoch),
    expectedPosition,
    actor: actorOf(ctx),
    events: fresh,
  };
}

/** Checks events of a caller, from envelope to content, and encodes them. */
export function parseEvents(
  path: string,
  events: readonly Event[],
  caller: Caller,
  rules: EventRules,
): NewEvent[] {
  const violations = new Violations();
  checkEnvelopes(violations, path, events);
  violations.throwIfAny();
  const types = events.map(({ body }) => (body ? typeForEmitter(rules, caller.role, body) : ""));
  checkBodies(violations, rules, path, events);
  violations.throwIfAny();
  const fresh = encodeNewEvents(events, types);
  const sizes = fresh.map(encodedBytes);
  if (sizes.some((bytes) => bytes > MAX_EVENT_BYTES)) throw tooLarge("an event", MAX_EVENT_BYTES);
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  if (total > MAX_BATCH_BYTES) throw tooLarge("the batch", MAX_BATCH_BYTES);
  return fresh;
}

// What the appender sent of an event, encoded: its body and the few fields of the envelope that are its own.
function encodedBytes({ body, id, traceparent, mayIgnore }: NewEvent): number {
  return (
    body.length + id.length + 2 + (traceparent === "" ? 0 : traceparent.length + 2) + (mayIgnore ? 2 : 0)
  );
}

function leaseOf(caller: Caller, epoch: bigint | undefined): Append["lease"] {
  // A harness without an epoch has none that could be the session's: nobody owns epoch 0.
  return caller.role === "HARNESS" ? { owner: caller.subject, epoch: epoch ?? 0n } : null;
}
