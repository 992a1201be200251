import assert from "node:assert/strict";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { combinedEffect } from "../../../services/session/domain/append.ts";
import { encodeNewEvent } from "../../../services/session/store/event-codec.ts";

const encode = (...bodies: NonNullable<Event["body"]>[]) =>
  combinedEffect(bodies.map((body) => encodeNewEvent(Event.fromPartial({ body }), "t")));
const MESSAGE = { $case: "userMessage", value: { content: [] } } as const;
const RUNNING = { $case: "sessionStatusRunning", value: {} } as const;
const IDLE = {
  $case: "sessionStatusIdle",
  value: { stopReason: { type: 1, eventIds: [] }, stopDetails: undefined },
} as const;

describe("what events change in a session's row", () => {
  const outcome = (...bodies: Parameters<typeof encode>) => {
    const { status, runnable } = encode(...(bodies as never[]));
    return [status, runnable];
  };

  it("input makes a session runnable and leaves its status", () => {
    assert.deepEqual(outcome(MESSAGE as never), [null, true]);
    assert.deepEqual(outcome({ $case: "userInterrupt", value: { sessionThreadId: "" } }), [null, true]);
  });
  it("the last status of a batch counts", () => {
    assert.deepEqual(outcome(RUNNING as never, IDLE as never), ["idle", false]);
    assert.deepEqual(outcome(IDLE as never, MESSAGE as never), ["idle", true]);
    assert.deepEqual(outcome(RUNNING as never, { $case: "sessionStatusRescheduled", value: {} }), [
      "rescheduling",
      true,
    ]);
  });
  it("an ended session is not runnable", () => {
    const end = { $case: "sessionStatusTerminated", value: { reason: "x", requestedBy: undefined } } as const;
    assert.deepEqual(outcome(MESSAGE as never, end), ["terminated", false]);
  });
  it("what only informs changes nothing", () => {
    assert.deepEqual(outcome({ $case: "ganglionHandLost", value: { handId: "h", reason: "r" } }), [
      null,
      null,
    ]);
  });
  it("the same event has the same digest whatever its trace, and another one with another body or flag", () => {
    const digest = (more: Partial<Event>, body: Event["body"] = RUNNING as never) =>
      Buffer.from(encodeNewEvent(Event.fromPartial({ ...more, body } as never), "t").digest).toString("hex");
    assert.equal(digest({ traceparent: "a" }), digest({ traceparent: "b" }));
    assert.notEqual(digest({}), digest({ mayIgnore: true }));
    assert.notEqual(digest({}), digest({}, IDLE as never));
  });
});
