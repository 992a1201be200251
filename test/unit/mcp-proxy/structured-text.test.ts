import assert from "node:assert/strict";
import fc from "fast-check";
import { structuredText } from "../../../services/mcp-proxy/upstream/structured-text.ts";

const spaces = fc.constantFrom(undefined, 1, "\t", "\n  ");
const breaks = fc.constantFrom("\n", "\r\n", "\r");

describe("the text of structured content", () => {
  it("is that of the answer, whatever it is, whatever stands around it, in a body or in an event [M25]", () => {
    fc.assert(
      fc.property(fc.jsonValue(), spaces, breaks, fc.boolean(), (value, indent, newline, isEvent) => {
        const written = JSON.stringify(value, null, indent);
        const other = { ...(isEvent ? { structuredContent: 1 } : {}), isError: false };
        const result = `${JSON.stringify(other).slice(0, -1)},"structuredContent":${written}}`;
        const message = `{ "jsonrpc": "2.0", "result": ${result}, "id": 1 }`;
        const data = message.replaceAll(/\r\n|\n|\r/g, `${newline}data: `);
        const event = `id: 9007199254740993${newline}data: ${data}${newline}${newline}`;
        const text = structuredText(value, [`data: {"id":1}\n\ndata: {"resu`, isEvent ? event : message]);
        assert.equal(text.replaceAll(/\s/g, ""), written.replaceAll(/\s/g, ""));
        if (!isEvent) assert.equal(text, written);
      }),
    );
  });

  it("is that of the value where no body says the same", () => {
    const value = { n: 9007199254740992 };
    for (const body of [
      "",
      "{",
      "data: {}\n\n",
      '{"result":{"structuredContent":{"n":9007199254740990}}}',
      '{"structuredContent":{"n":9007199254740993}}',
      '{"result":{"content":[{"text":"{\\"structuredContent\\":{\\"n\\":9007199254740993}}"}]}}',
      '{"result":{"_meta":{"structuredContent":{"n":9007199254740993}}}}',
    ])
      assert.equal(structuredText(value, [body]), '{"n":9007199254740992}', body);
  });
});
