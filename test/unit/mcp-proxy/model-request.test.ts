import assert from "node:assert/strict";
import fc from "fast-check";
import { hasDuplicateKeys } from "../../../services/mcp-proxy/domain/duplicate-keys.ts";
import { judgeBetas, judgeModelRequest } from "../../../services/mcp-proxy/domain/judge-model-request.ts";

const BASE = { model: "claude-test", max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
const refusal = (body: unknown): string => {
  try {
    judgeModelRequest(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)));
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  return "allowed";
};

describe("a request to the model", () => {
  it("passes with the fields that stay between caller and model", () => {
    const tools = [
      { name: "a", input_schema: { type: "object" } },
      { type: "custom", name: "b", input_schema: {} },
      { type: "bash_20250124", name: "bash" },
    ];
    assert.equal(
      refusal({ ...BASE, stream: true, tools, system: "s", thinking: { type: "disabled" } }),
      "allowed",
    );
  });

  for (const more of [
    { mcp_servers: [{ type: "url", url: "https://evil.test", authorization_token: "x" }] },
    { container: "c" },
    { something_new: 1 },
    { tools: [{ type: "web_search_20250305", name: "web_search" }] },
    { tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] },
    { tools: [{ type: "code_execution_20250825", name: "code_execution" }] },
    { tools: [{ type: "mcp_toolset", mcp_server_name: "x" }] },
    { tools: [{ type: 7 }] },
  ]) {
    it(`is refused with ${JSON.stringify(more).slice(0, 60)} [A057]`, () =>
      assert.equal(refusal({ ...BASE, ...more }), "MODEL_FEATURE_NOT_ALLOWED"));
  }

  const image = (source: object) => ({ type: "image", source });
  const inline = image({ type: "base64", media_type: "image/png", data: "aa" });
  const outside = image({ type: "url", url: "https://evil.test/x.png" });
  const asked = (...content: object[]) => ({ messages: [{ role: "user", content }] });
  const result = (...content: object[]) => ({ type: "tool_result", tool_use_id: "t", content });

  it("passes with sources that are in it, and whatever a tool's input says", () => {
    const document = { type: "document", source: { type: "content", content: [inline] } };
    const found = { type: "search_result", source: "https://good.test", title: "", content: [] };
    const use = { type: "tool_use", id: "t", name: "n", input: outside };
    assert.equal(refusal({ ...BASE, ...asked(inline, document, found, use, result(inline)) }), "allowed");
  });

  for (const [where, more] of [
    ["an image", asked({ type: "text", text: "" }, outside, { type: "text", text: "" })],
    ["a stored file", asked({ type: "document", source: { type: "file", file_id: "f" } })],
    ["a source of no type", asked(image({}))],
    ["a container's file", asked({ type: "container_upload", file_id: "f" })],
    ["a tool's result", asked(result({ type: "text", text: "" }, outside, inline))],
    ["a document's content", asked({ type: "document", source: { type: "content", content: [outside] } })],
    ["the system prompt", { system: [{ type: "text", text: "" }, outside] }],
  ] as const) {
    it(`is refused when ${where} is to be fetched by the provider [A057]`, () =>
      assert.equal(refusal({ ...BASE, ...more }), "MODEL_FEATURE_NOT_ALLOWED"));
  }

  for (const body of [
    "",
    "[]",
    "null",
    "{",
    '"x"',
    '{"max_tokens":1}',
    '{"model":7}',
    '{"model":"a","stream":"yes"}',
  ]) {
    it(`is refused when it is ${JSON.stringify(body)}`, () => assert.equal(refusal(body), "INVALID_FIELD"));
  }

  it("is refused when a key occurs twice, however it is written [A112]", () => {
    assert.equal(refusal('{"model":"a","model":"b"}'), "INVALID_FIELD");
    assert.equal(refusal('{"model":"a","mod\\u0065l":"b"}'), "INVALID_FIELD");
    assert.equal(
      refusal('{"model":"a","tools":[{"type":"custom","type":"web_search_20250305"}]}'),
      "INVALID_FIELD",
    );
  });

  it("is judged as JSON.parse and a reader of single keys would, for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        assert.equal(hasDuplicateKeys(Buffer.from(json), JSON.parse(json)), false);
        const twice = `{"x":${json},"y":{"k":1,"k":${json}}}`;
        assert.equal(hasDuplicateKeys(Buffer.from(twice), JSON.parse(twice)), true);
      }),
    );
  });

  it("may repeat a key in different objects, and in text", () => {
    const json = '{"a":{"k":1},"b":[{"k":1},{"k":2}],"c":"{\\"k\\":1,\\"k\\":2}","d":"\\\\"}';
    assert.equal(hasDuplicateKeys(Buffer.from(json), JSON.parse(json)), false);
  });

  it("is refused when it is nested beyond reason, in linear time [A112]", () => {
    const body = `{"model":"a","messages":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const startedAt = performance.now();
    assert.equal(refusal(body), "INVALID_FIELD");
    assert.ok(performance.now() - startedAt < 1000);
  });

  it("treats __proto__ as a field like any other [A111]", () => {
    assert.equal(refusal('{"model":"a","__proto__":{"x":1}}'), "MODEL_FEATURE_NOT_ALLOWED");
    assert.equal(({} as { x?: number }).x, undefined);
  });

  it("takes betas that change the answer and refuses those that open a way out [A159]", () => {
    judgeBetas(undefined);
    judgeBetas("interleaved-thinking-2025-05-14, context-management-2025-06-27");
    for (const beta of [
      "mcp-client-2025-04-04",
      "files-api-2025-04-14",
      "code-execution-2025-05-22",
      "x",
      "",
    ]) {
      assert.throws(() => judgeBetas(`interleaved-thinking-2025-05-14,${beta}`), {
        reason: "MODEL_FEATURE_NOT_ALLOWED",
      });
    }
  });
});
