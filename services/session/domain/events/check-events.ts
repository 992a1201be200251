import type { Violations } from "../../../common/errors/violations.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { ID } from "../id-shape.ts";
import { checkBody } from "./check-body.ts";
import { type EventRules, openTypeFault } from "./event-rules.ts";

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

const SET_BY_LOG = "is set by the log";

/** Limits of one append. */
export const MAX_EVENTS = 100;
export const MAX_EVENT_BYTES = 1 << 20;
export const MAX_BATCH_BYTES = 3 << 20;

/** checkEnvelopes checks everything of the events but their bodies' content. */
export function checkEnvelopes(violations: Violations, path: string, events: readonly Event[]): void {
  const ids = new Set<string>();
  events.forEach((event, index) => {
    // Fields are named only when something is wrong with them: every append comes by here.
    const wrong = (field: string, what: string) => violations.add(`${path}[${index}].${field}`, what);
    const { id, traceparent } = event;
    if (id !== "") {
      if (!ID.test(id)) wrong("id", "must be 1 to 64 letters, digits, _ or -");
      if (ids.has(id)) wrong("id", "is there twice");
      ids.add(id);
    }
    if (event.body === undefined) wrong("body", "is required");
    if (event.threadId !== "") wrong("thread_id", "names a thread that does not exist");
    if (traceparent !== "" && !TRACEPARENT.test(traceparent))
      wrong("traceparent", "must be a W3C traceparent");
    if (event.mayIgnore && event.body?.$case !== "open")
      wrong("may_ignore", "is for events of an open type only");
    if (event.position !== 0n) wrong("position", SET_BY_LOG);
    if (event.createTime !== undefined) wrong("create_time", SET_BY_LOG);
    if (event.type !== "") wrong("type", SET_BY_LOG);
    if (event.actor !== undefined) wrong("actor", SET_BY_LOG);
    if (event.epoch !== 0n) wrong("epoch", SET_BY_LOG);
  });
}

/** checkBodies checks what the events say. */
export function checkBodies(
  violations: Violations,
  rules: EventRules,
  path: string,
  events: readonly Event[],
): void {
  events.forEach((event, index) => {
    if (!event.body) return;
    if (event.body.$case === "open") {
      const fault = openTypeFault(rules, event.body.value.type);
      if (fault) violations.add(`${path}[${index}].open.type`, fault);
    }
    if (event.body.$case === "sessionStatusTerminated" && index !== events.length - 1) {
      violations.add(`${path}[${index}]`, "ends the session and must be the last");
    }
    checkBody(violations, `${path}[${index}]`, event.body);
  });
}
