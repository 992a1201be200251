import assert from "node:assert/strict";
import { fromStatus } from "../../../services/common/errors/from-status.ts";
import { CODES, GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { STATUS_DETAILS_KEY, toStatus } from "../../../services/common/errors/to-status.ts";
import { Violations } from "../../../services/common/errors/violations.ts";

const ORIGIN = { service: "session", traceId: "abc" };

describe("GanglionError", () => {
  it("comes back from the wire with everything but its cause", () => {
    const sent = new GanglionError({
      code: "FAILED_PRECONDITION",
      reason: "STALE_EPOCH",
      message: "the epoch is stale",
      metadata: { epoch: "3" },
      retryAfterMs: 250,
      cause: new Error("secret"),
    });
    const back = fromStatus(toStatus(sent, ORIGIN), "session");
    assert.equal(back.code, "FAILED_PRECONDITION");
    assert.equal(back.reason, "STALE_EPOCH");
    assert.equal(back.domain, "ganglion.session");
    assert.equal(back.retryAfterMs, 250);
    assert.deepEqual({ ...back.metadata }, { epoch: "3" });
    assert.ok(!String(back.message).includes("secret"));
  });

  it("of another part keeps that part's name when it passes through", () => {
    const inner = fromStatus(
      toStatus(new GanglionError({ code: "NOT_FOUND", reason: "HAND_GONE", message: "gone" }), {
        service: "sandbox",
        traceId: "",
      }),
      "sandbox",
    );
    const outer = fromStatus(toStatus(inner, { service: "harness", traceId: "" }), "harness");
    assert.equal(outer.domain, "ganglion.sandbox");
  });

  it("anything else is INTERNAL with a trace id and no text of its own", () => {
    for (const thrown of [new Error("secret"), "secret", null, undefined, 7, { message: "secret" }]) {
      const status = toStatus(thrown, ORIGIN);
      assert.equal(status.code, CODES.INTERNAL);
      assert.equal(status.details, "internal error");
      const bytes = status.metadata.get(STATUS_DETAILS_KEY)[0];
      assert.ok(!String(bytes).includes("secret"));
      assert.equal(fromStatus(status, "session").metadata.trace_id, "abc");
    }
  });

  it("[A111] metadata keys of the prototype are data", () => {
    const metadata = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
    const back = fromStatus(
      toStatus(new GanglionError({ code: "ABORTED", reason: "R", message: "m", metadata }), ORIGIN),
      "session",
    );
    assert.equal(Object.getOwnPropertyDescriptor(back.metadata, "constructor")?.value, "y");
    assert.equal(({} as Record<string, unknown>).x, undefined);
  });
});

describe("Violations", () => {
  it("name every field at fault", () => {
    const violations = new Violations()
      .string("a", "", { required: true })
      .string("b", "xxxx", { maxLength: 3 })
      .string("c", "é", { maxBytes: 1 })
      .string("d", "x", { pattern: /^y$/, patternMeans: "y" })
      .string("e", "x", { oneOf: ["y"] })
      .integer("f", 5n, { max: 4 })
      .integer("g", undefined, { required: true })
      .bytes("h", Buffer.alloc(3), { maxBytes: 2 })
      .count("i", 0, { min: 1 })
      .present("j", undefined);
    assert.throws(
      () => violations.throwIfAny(),
      (error: GanglionError) => {
        assert.equal(error.code, "INVALID_ARGUMENT");
        assert.equal(error.reason, "INVALID_FIELD");
        assert.deepEqual(
          error.violations.map(({ field }) => field),
          [..."abcdefghij"],
        );
        return true;
      },
    );
  });

  it("are silent about what is fine, and about what is absent and not required", () => {
    const fine = new Violations()
      .string("a", "x", { required: true, maxLength: 1, pattern: /x/ })
      .string("b", "", { maxLength: 1, pattern: /x/ })
      .integer("c", 0, { min: 0, max: 0 })
      .integer("d", undefined, { min: 1 })
      .bytes("e", Buffer.alloc(0), { maxBytes: 0 });
    assert.equal(fine.ok, true);
    fine.throwIfAny();
  });
});
