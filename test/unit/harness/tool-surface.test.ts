import assert from "node:assert/strict";
import { capText } from "../../../services/harness/domain/cap-text.ts";
import { mcpContent } from "../../../services/harness/domain/mcp-content.ts";
import { mcpModelName } from "../../../services/harness/domain/mcp-tool-names.ts";
import { retryDelay } from "../../../services/harness/domain/retry-delay.ts";
import { sanitizeSchema } from "../../../services/harness/domain/sanitize-schema.ts";
import { jsonBlock, textBlock } from "../../../services/harness/domain/text-block.ts";

describe("names of MCP tools", () => {
  it("differ between servers that offer the same tool [B097]", () => {
    assert.notEqual(mcpModelName("one", "search"), mcpModelName("two", "search"));
    assert.equal(mcpModelName("one", "search"), "mcp__one__search");
  });

  it("have at most 64 safe characters and still differ [B097]", () => {
    const long = "very-long-name".repeat(9);
    const names = [
      mcpModelName(long, `${long}a`),
      mcpModelName(long, `${long}b`),
      mcpModelName("sp ace", "x"),
      mcpModelName("sp_ace", "x"),
      mcpModelName("a__b", "c"),
      mcpModelName("a", "b__c"),
    ];
    for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
    assert.equal(new Set(names).size, names.length);
  });
});

describe("schemas of tools", () => {
  const sanitize = (schema: unknown) => sanitizeSchema(Buffer.from(JSON.stringify(schema)));

  it("lose a root anyOf but keep its properties as optional ones [B100]", () => {
    const part = (name: string) => ({ properties: { [name]: { type: "string" } }, required: [name] });
    const { schema, dropped } = sanitize({ anyOf: [part("a"), part("b")] });
    assert.deepEqual(schema, {
      type: "object",
      properties: { a: { type: "string" }, b: { type: "string" } },
    });
    assert.deepEqual(dropped, ["anyOf"]);
  });

  it("have their references written out and recursive ones opened up [B101]", () => {
    const { schema, dropped } = sanitize({
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    });
    assert.deepEqual(schema, {
      type: "object",
      properties: { tree: { type: "object", properties: { next: {} } } },
    });
    assert.deepEqual(dropped, ["$ref"]);
  });

  it("lose root conditions, and boolean schemas become open [B101]", () => {
    const conditions = '"if":{"properties":{"any":{"const":1}}},"then":{"required":["none"]},"else":{}';
    const json = `{"type":"object","properties":{"any":true,"none":false},${conditions}}`;
    const { schema } = sanitizeSchema(Buffer.from(json));
    assert.deepEqual(schema, { type: "object", properties: { any: {}, none: {} } });
  });

  it("become an open object when they are none at all [B101]", () => {
    for (const odd of [true, "x", null, [1]]) assert.deepEqual(sanitize(odd).schema, { type: "object" });
    assert.equal(sanitize({ type: "string" }).schema.type, "object");
  });
});

describe("content of MCP results", () => {
  const none = new Uint8Array();

  it("shows an image although structured content was promised [B104]", () => {
    const image = jsonBlock("image", { type: "image", data: "QUJD", mimeType: "image/png" });
    const [shown, ...rest] = mcpContent([image], none);
    assert.equal(shown?.type, "image");
    assert.equal(rest.length, 0);
  });

  it("shows structured data beside a summary, and not twice when it is the text itself [B103]", () => {
    const structured = Buffer.from('{"a": 1}');
    assert.equal(mcpContent([textBlock("one line")], structured).length, 2);
    assert.equal(mcpContent([textBlock('{"a":1}')], structured).length, 1);
    const far = Buffer.from('{"id":9007199254740993}');
    assert.equal(mcpContent([textBlock('{ "id": 9007199254740993 }')], far).length, 1);
    assert.equal(mcpContent([textBlock('{"id":9007199254740992}')], far).length, 2, "its digits are others");
  });

  it("turns what the model cannot take into a note", () => {
    const audio = jsonBlock("audio", { type: "audio", data: "QUJD", mimeType: "audio/wav" });
    assert.match(String(mcpContent([audio], none)[0]?.data?.value), /audio clip/);
  });
});

describe("capped text", () => {
  it("cuts no character in half", () => {
    const capped = capText("\u{1f600}".repeat(1000), 101);
    assert.ok(!/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(capped));
  });
});

describe("the wait before another attempt", () => {
  it("is never shorter than what was asked for [B020]", () => {
    for (const random of [0, 0.5, 0.999]) assert.ok(retryDelay(1, 171_000, random) >= 171_000);
  });

  it("grows, is bounded, and differs [B018]", () => {
    assert.ok(retryDelay(1, undefined, 1) < retryDelay(5, undefined, 0));
    assert.ok(retryDelay(50, undefined, 1) <= 30_000);
    assert.notEqual(retryDelay(3, undefined, 0.1), retryDelay(3, undefined, 0.9));
    const bounds = { firstMs: 100, mostMs: 2_000 };
    const most = [1, 2, 3, 4, 5, 6, 50].map((attempt) => retryDelay(attempt, undefined, 1, bounds));
    assert.deepEqual(most, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
  });
});
