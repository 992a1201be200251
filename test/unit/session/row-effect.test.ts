import assert from "node:assert/strict";
import { loadContracts } from "../../../services/common/grpc/contracts.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { combinedEffect } from "../../../services/session/domain/append.ts";
import { EFFECT_TYPES, effectOf, INPUT_TYPES } from "../../../services/session/domain/row-effect.ts";
import { loadEventRules } from "../../../services/session/rpc/load-event-rules.ts";
import { encodeNewEvent } from "../../../services/session/store/event-codec.ts";

const IMAGE = new URL("../../../services/gen/image.binpb", import.meta.url).pathname;
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
  it("a pause at the budget ends with a change of the budget or the next turn", () => {
    const at = (type: 1 | 4) =>
      ({
        $case: "sessionStatusIdle",
        value: { stopReason: { type, eventIds: [] }, stopDetails: undefined },
      }) as never;
    const updated = (value: object) =>
      ({
        $case: "sessionUpdated",
        value: { agentJson: Buffer.alloc(0), isBudgetRemoved: false, ...value },
      }) as never;
    assert.equal(encode(at(4)).isBudgetPaused, true);
    assert.equal(encode(at(1)).isBudgetPaused, false);
    assert.equal(encode(at(4), RUNNING as never).isBudgetPaused, false);
    for (const change of [{ budget: { maxListCostCents: 2n } }, { isBudgetRemoved: true }]) {
      const { isBudgetPaused, runnable } = encode(at(4), updated(change));
      assert.deepEqual([isBudgetPaused, runnable], [false, true]);
    }
    assert.deepEqual(encode(at(4), updated({ title: "x" })).isBudgetPaused, true);
  });
  it("the types that a fork looks at are all that change anything", () => {
    const rules = loadEventRules(loadContracts(IMAGE));
    const changing = [...rules.values()]
      .filter(({ bodyCase }) => {
        const value = { budget: { maxListCostCents: 1n } };
        const { body } = Event.fromPartial({ body: { $case: bodyCase, value } } as never);
        return effectOf(body) !== null;
      })
      .map(({ type }) => type);
    assert.deepEqual(changing.toSorted(), EFFECT_TYPES.toSorted());
    for (const type of INPUT_TYPES) assert.ok(changing.includes(type));
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
