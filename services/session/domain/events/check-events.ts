import type { Violations } from "../../../common/errors/violations.ts";
import type { Event } from "../../../gen/ganglion/types/v1/event.ts";
import { ID } from "../id-shape.ts";
import { checkBody } from "./check-body.ts";
import { type EventRules, openTypeFault } from "./event-rules.ts";

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Limits of one append. */
export const MAX_EVENTS = 100;
export const MAX_EVENT_BYTES = 1 << 20;
export const MAX_BATCH_BYTES = 3 << 20;

/** checkEnvelopes checks everything of the events but their bodies' content. */
export function checkEnvelopes(violations: Violations, path: string, events: readonly Event[]): void {
  const ids = new Set<string>();
  events.forEach((event, index) => {
    const at = (field: string) => `${path}[${index}].${field}`;
    violations.string(at("id"), event.id, { pattern: ID, patternMeans: "1 to 64 letters, digits, _ or -" });
    if (event.id !== "" && ids.has(event.id)) violations.add(at("id"), "is there twice");
    ids.add(event.id);
    violations.present(at("body"), event.body);
    violations.check(event.threadId === "", at("thread_id"), "names a thread that does not exist");
    violations.string(at("traceparent"), event.traceparent, {
      pattern: TRACEPARENT,
      patternMeans: "a W3C traceparent",
    });
    violations.check(
      !event.mayIgnore || event.body?.$case === "open",
      at("may_ignore"),
      "is for events of an open type only",
    );
    violations.check(event.position === 0n, at("position"), "is set by the log");
    violations.check(event.createTime === undefined, at("create_time"), "is set by the log");
    violations.check(event.type === "", at("type"), "is set by the log");
    violations.check(event.actor === undefined, at("actor"), "is set by the log");
    violations.check(event.epoch === 0n, at("epoch"), "is set by the log");
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
