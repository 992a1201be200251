import assert from "node:assert/strict";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { waitStep } from "../../../services/harness/domain/mesh-failures.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { toEvents, type WrittenEvent } from "../../golden/load-log.ts";
import { session } from "./fakes/brain.ts";

const decideOn = (events: readonly Event[]) => decide(events.reduce(fold, emptyState()));

/** A session with something to do that brain after brain took, so many seconds after each other. */
function leases(count: number, everySeconds: number): Event[] {
  const lease = (n: number): WrittenEvent => ({
    id: `sevt_lease_${n}`,
    type: "ganglion.lease_acquired",
    body: { epoch: String(n), owner: "spiffe://x" },
  });
  const first = session();
  const events = toEvents([...first, ...Array.from({ length: count }, (_, n) => lease(n + 1))]);
  return events.map((event, i) => ({
    ...event,
    createTime: { seconds: BigInt(1_800_000_000 + Math.max(0, i - first.length) * everySeconds), nanos: 0 },
  }));
}

/** A session whose first model request failed again and again, for these reasons. */
function failures(reasons: readonly string[]): Event[] {
  const spans = reasons.flatMap((errorReason, i): WrittenEvent[] => [
    {
      id: `sevt_span_${i}`,
      type: "span.model_request_start",
      body: { consumedPosition: "9", attempt: i + 1 },
    },
    {
      id: `sevt_end_${i}`,
      type: "span.model_request_end",
      body: { modelRequestStartId: `sevt_span_${i}`, isError: true, errorReason },
    },
  ]);
  return toEvents([...session(), ...spans]);
}

const reasonOf = (action: ReturnType<typeof decide>) =>
  action.type === "fail" ? action.failure.reason : action.type;

describe("brains and other parts that die", () => {
  it("a session that brain after brain gets nowhere with, for a while, is given up under a name of its own", () => {
    assert.equal(reasonOf(decideOn(leases(10, 60))), "NO_PROGRESS");
    assert.equal(reasonOf(decideOn(leases(9, 60))), "call_model");
  });

  it("a session is not to blame for many brains that died within a short time", () => {
    assert.equal(reasonOf(decideOn(leases(50, 5))), "call_model");
    assert.equal(reasonOf(decideOn(leases(100, 5))), "NO_PROGRESS");
  });

  it("a part of the mesh that is away uses up the attempts at the model as little as an interrupt does [L8]", () => {
    for (const reason of [
      "UNREACHABLE",
      "VAULT_UNAVAILABLE",
      "AUDIT_UNAVAILABLE",
      "DRAINING",
      "INTERRUPTED",
    ]) {
      assert.equal(reasonOf(decideOn(failures(Array(40).fill(reason)))), "call_model", reason);
    }
    const mixed = [...Array(7).fill("MODEL_OVERLOADED"), ...Array(20).fill("UNREACHABLE")];
    assert.equal(reasonOf(decideOn(failures(mixed))), "call_model");
    assert.equal(reasonOf(decideOn(failures([...mixed, "MODEL_OVERLOADED"]))), "MODEL_FAILED");
  });

  it("the wait for a part of the mesh stays short for a while, and grows when it is away for longer", () => {
    const steps = (reason: string) =>
      [1, 2, 3, 10, 23, 24, 40].map((failedAttempt) => waitStep(reason, { failedAttempt, failedAtModel: 2 }));
    assert.deepEqual(steps("VAULT_UNAVAILABLE"), [1, 2, 3, 3, 3, 4, 20]);
    assert.deepEqual(new Set(steps("MODEL_OVERLOADED")), new Set([2]));
  });

  it("what is away for good ends the turn in the end, and a failing model after eight attempts [B020, B023]", () => {
    assert.equal(reasonOf(decideOn(failures(Array(80).fill("VAULT_UNAVAILABLE")))), "MODEL_FAILED");
    assert.equal(reasonOf(decideOn(failures(Array(8).fill("MODEL_FAILED")))), "MODEL_FAILED");
    assert.equal(reasonOf(decideOn(failures(Array(7).fill("MODEL_FAILED")))), "call_model");
    assert.equal(reasonOf(decideOn(failures(Array(8).fill("SOMETHING_NEW")))), "MODEL_FAILED");
  });
});
