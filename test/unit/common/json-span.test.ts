import assert from "node:assert/strict";
import fc from "fast-check";
import { findMember, withMember } from "../../../services/common/json/json-span.ts";

const object = fc.dictionary(fc.string(), fc.jsonValue());
const spaces = fc.constantFrom(undefined, 1, "\t", "\n  ");

describe("members of a JSON text", () => {
  it("are found as written, whatever stands around them", () => {
    fc.assert(
      fc.property(object, spaces, (value, indent) => {
        const json = JSON.stringify(value, null, indent);
        for (const name of Object.keys(value)) {
          const span = findMember(json, name);
          assert.ok(span, name);
          assert.deepEqual(
            JSON.parse(json.slice(span.start, span.end)),
            JSON.parse(JSON.stringify(value[name])),
          );
        }
        assert.equal(findMember(json, "\u0000none"), undefined);
      }),
    );
  });

  it("are replaced or added, and the rest stays byte for byte", () => {
    fc.assert(
      fc.property(object, spaces, fc.string(), (value, indent, name) => {
        const json = JSON.stringify(value, null, indent);
        const changed = withMember(json, name, '"new"');
        const expected: Record<string, unknown> = JSON.parse(json) as Record<string, unknown>;
        Object.defineProperty(expected, name, {
          value: "new",
          enumerable: true,
          configurable: true,
          writable: true,
        });
        assert.deepEqual(JSON.parse(changed), expected);
        const span = findMember(json, name);
        if (span)
          assert.ok(changed.startsWith(json.slice(0, span.start)) && changed.endsWith(json.slice(span.end)));
      }),
    );
  });
});
