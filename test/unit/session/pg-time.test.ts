import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { readPageToken, writePageToken } from "../../../services/session/store/page-token.ts";
import { fromTimestamp, toTimestamp } from "../../../services/session/store/pg-time.ts";

describe("times of the database [M30]", () => {
  it("keep their microseconds in both directions", () => {
    for (const [text, seconds, nanos] of [
      ["2026-11-30 01:02:03.123456+00", 1796000523n, 123_456_000],
      ["2026-11-30 01:02:03.1+00", 1796000523n, 100_000_000],
      ["2026-11-30 01:02:03+00", 1796000523n, 0],
      ["1969-12-31 23:59:59.5+00", -1n, 500_000_000],
    ] as const) {
      assert.deepEqual(toTimestamp(text), { seconds, nanos });
      assert.equal(
        Date.parse(fromTimestamp({ seconds, nanos })),
        Date.parse(`${text.replace(" ", "T").slice(0, -3)}Z`),
      );
    }
    assert.equal(fromTimestamp({ seconds: 1796000523n, nanos: 123_456_789 }), "2026-11-30T01:02:03.123456Z");
  });

  it("are refused in any other form", () => {
    for (const text of ["2026-11-30 01:02:03+02", "infinity", "", "2026-11-30T01:02:03Z"]) {
      assert.throws(() => toTimestamp(text));
    }
  });
});

describe("page tokens [B056]", () => {
  const key = { at: "2026-11-30 01:02:03.123456+00", id: "sesn_1" };

  it("come back as they were", () => {
    assert.deepEqual(readPageToken("sessions-", writePageToken("sessions-", key)), key);
    assert.equal(readPageToken("sessions-", ""), null);
  });

  it("of another list, or made up, are refused [A133]", () => {
    const forged = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    for (const token of [
      writePageToken("agents", key),
      "x",
      forged(null),
      forged({ at: key.at }),
      forged(["sessions-", "now()", "x"]),
      forged(["sessions-", key.at, 7]),
      forged(["sessions-", `${key.at}'; --`, "x"]),
    ]) {
      assert.throws(
        () => readPageToken("sessions-", token),
        (error) => GanglionError.is(error, "INVALID_FIELD"),
      );
    }
  });
});
