import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import { type Ask, ask, MODEL, textIn, usesOf } from "./model-requests.ts";

const BASH: Anthropic.Tool = {
  name: "bash",
  input_schema: { type: "object", properties: { command: { type: "string" } } },
};
const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const ECHO: Anthropic.Tool = {
  name: "mcp__demo__echo",
  input_schema: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
};

describe("scripted model", () => {
  let model: TestModel;
  let client: Anthropic;

  before(async () => {
    model = await startScriptedModel();
    client = new Anthropic({ baseURL: model.url, apiKey: model.apiKey, maxRetries: 0 });
  });
  after(() => model.stop());

  const stream = (params: Ask) => client.messages.stream(params).finalMessage();
  /** The request that follows `message`, each of its calls answered by `answer`. */
  const answered = (
    params: Ask,
    message: Anthropic.Message,
    answer: (use: Anthropic.ToolUseBlock) => Partial<Anthropic.ToolResultBlockParam>,
  ): Ask => ({
    ...params,
    messages: [
      ...params.messages,
      { role: "assistant", content: message.content as Anthropic.ContentBlockParam[] },
      {
        role: "user",
        content: usesOf(message).map((use) => ({ type: "tool_result", tool_use_id: use.id, ...answer(use) })),
      },
    ],
  });

  describe("the door", () => {
    it("says that it is scripted when it listens", () => {
      assert.equal(model.listening.scripted, true);
    });

    it("accepts the key as x-api-key and as a bearer, and refuses any other with 401", async () => {
      await client.messages.create({ ...ask("hi"), stream: false });
      const bearer = new Anthropic({
        baseURL: model.url,
        apiKey: null,
        authToken: model.apiKey,
        maxRetries: 0,
      });
      await bearer.messages.create({ ...ask("hi"), stream: false });
      for (const apiKey of ["wrong", `${model.apiKey}x`, model.apiKey.slice(0, -1)]) {
        const stranger = new Anthropic({ baseURL: model.url, apiKey, maxRetries: 0 });
        await assert.rejects(stranger.messages.create({ ...ask("hi"), stream: false }), (error) => {
          assert.ok(error instanceof Anthropic.AuthenticationError);
          assert.equal(error.type, "authentication_error");
          assert.ok(error.requestID);
          return true;
        });
      }
      const bare = await fetch(`${model.url}/v1/messages`, { method: "POST", body: "{}" });
      assert.equal(bare.status, 401);
    });

    it("counts tokens", async () => {
      const { messages } = ask("a".repeat(4000));
      const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages });
      assert.ok(input_tokens >= 1000 && input_tokens < 1100);
    });

    it("journals requests without a credential, to holders of the journal's token only", async () => {
      await stream(ask("scenario: plain id=journal"));
      const seen = await model.journal.waitFor(
        ({ kind, scenario }) => kind === "end" && scenario === "plain",
      );
      assert.equal(seen.ending, "complete");
      const all = JSON.stringify(await model.journal.entries());
      assert.ok(all.includes("id=journal"));
      assert.ok(!all.includes(model.apiKey));
      assert.ok(!model.output().includes(model.apiKey));
      for (const authorization of ["", `Bearer ${model.apiKey}`]) {
        assert.equal((await fetch(`${model.url}/journal`, { headers: { authorization } })).status, 401);
      }
    });

    it("is as strict as the real API about what a harness may send", async () => {
      const use = { type: "tool_use" as const, id: "toolu_1", name: "bash", input: {} };
      const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "ok" };
      const user = (content: Anthropic.MessageParam["content"]) => ({ role: "user" as const, content });
      const assistant = (content: Anthropic.MessageParam["content"]) => ({
        role: "assistant" as const,
        content,
      });
      const text = (words: string) => ({ type: "text" as const, text: words });
      const bad: [string, Anthropic.MessageParam[]][] = [
        ["unanswered call", [user("go"), assistant([use])]],
        ["unanswered call", [user("go"), assistant([use]), user("never mind")]],
        ["stray result", [user("go"), assistant("ok"), user([result])]],
        ["two results", [user("go"), assistant([use]), user([result, result])]],
        ["result after text", [user("go"), assistant([use]), user([text("here"), result])]],
        ["reused id", [user("go"), assistant([use]), user([result]), assistant([use]), user([result])]],
        ["empty text", [user([text("")])]],
        ["assistant first", [assistant("hello")]],
        [
          "altered thinking",
          [user("go"), assistant([{ type: "thinking", thinking: "a", signature: "b" }]), user("on")],
        ],
      ];
      for (const [what, messages] of bad) {
        await assert.rejects(stream({ ...ask("x"), messages }), Anthropic.BadRequestError, what);
      }
    });
  });

  describe("streaming", () => {
    it("sends the event sequence of the Messages API, with usage and its cache fields", async () => {
      const events = [];
      for await (const event of client.messages.stream(ask("scenario: plain words=5"))) events.push(event);
      assert.deepEqual(
        [...new Set(events.map(({ type }) => type))],
        [
          "message_start",
          "content_block_start",
          "content_block_delta",
          "content_block_stop",
          "message_delta",
          "message_stop",
        ],
      );
      const [start] = events;
      assert.ok(start?.type === "message_start");
      const { usage } = start.message;
      assert.deepEqual(
        [
          usage.cache_creation_input_tokens,
          usage.cache_read_input_tokens,
          usage.cache_creation?.ephemeral_5m_input_tokens,
        ],
        [0, 0, 0],
      );
      assert.ok(usage.input_tokens > 0);
    });

    it("answers the same without streaming", async () => {
      const params = ask("scenario: plain words=5");
      const whole = await client.messages.create({ ...params, stream: false });
      const streamed = await stream(params);
      assert.deepEqual(whole.content, streamed.content);
      assert.equal(whole.stop_reason, streamed.stop_reason);
      assert.equal(whole.usage.output_tokens, streamed.usage.output_tokens);
    });

    it("counts a cached prefix as written once and read afterwards", async () => {
      const system = [
        {
          type: "text" as const,
          text: `rules ${Math.random()} ${"x".repeat(4000)}`,
          cache_control: { type: "ephemeral" as const },
        },
      ];
      const first = await stream({ ...ask("hi"), system });
      const second = await stream({ ...ask("hi again"), system });
      const changed = await stream({
        ...ask("hi"),
        system: [{ ...system[0]!, text: `${system[0]!.text}!` }],
      });
      assert.ok((first.usage.cache_creation_input_tokens ?? 0) > 1000);
      assert.equal(first.usage.cache_read_input_tokens, 0);
      assert.equal(second.usage.cache_read_input_tokens, first.usage.cache_creation_input_tokens);
      assert.equal(changed.usage.cache_read_input_tokens, 0);
    });

    it("streams signed and redacted thinking, and takes it back unchanged", async () => {
      const params = ask("scenario: thinking", [BASH]);
      const message = await stream(params);
      assert.deepEqual(
        message.content.map(({ type }) => type),
        ["thinking", "redacted_thinking", "tool_use"],
      );
      const next = await stream(answered(params, message, () => ({ content: "thought" })));
      assert.equal(next.stop_reason, "end_turn");
    });

    it("keeps text beyond ASCII whole over many deltas", async () => {
      const message = await stream(ask("scenario: long chars=20000"));
      const text = textIn(message);
      assert.ok(text.length >= 20_000 && !text.includes("\ufffd") && text.isWellFormed());
    });

    it("ends with max_tokens where the request's limit falls", async () => {
      const message = await stream({ ...ask("scenario: plain words=400"), max_tokens: 20 });
      assert.equal(message.stop_reason, "max_tokens");
      assert.equal(message.usage.output_tokens, 20);
      assert.equal(textIn(message).length, 80);
    });

    it("spreads a slow reply over the time asked for", async () => {
      const started = performance.now();
      await stream(ask("scenario: slow ms=600"));
      assert.ok(performance.now() - started >= 550);
    });
  });

  describe("the default conversation", () => {
    it("greets, calls the tool it is asked to call, and answers with its result", async () => {
      const params = ask("Say hello, then call get_weather for Paris.", [BASH, WEATHER]);
      const message = await stream(params);
      assert.match(textIn(message), /hello/i);
      assert.deepEqual(
        usesOf(message).map(({ name, input }) => ({ name, input })),
        [{ name: "get_weather", input: { city: "Paris" } }],
      );
      assert.equal(message.stop_reason, "tool_use");
      const end = await stream(answered(params, message, () => ({ content: "sunny, 21 degrees" })));
      assert.match(textIn(end), /sunny, 21 degrees/);
      assert.equal(end.stop_reason, "end_turn");
    });

    it("runs a command, uses an MCP tool, and passes JSON input on", async () => {
      const inputOf = async (text: string) => usesOf(await stream(ask(text, [BASH, ECHO])))[0];
      assert.deepEqual((await inputOf("Run: echo hello-from-hand"))?.input, {
        command: "echo hello-from-hand",
      });
      assert.equal((await inputOf("Use the demo MCP server."))?.name, ECHO.name);
      assert.deepEqual((await inputOf('call bash with {"command":"ls"}'))?.input, { command: "ls" });
    });

    it("asks again when the hand was lost, and gives up in the end", async () => {
      let params = ask("Run: make tea", [BASH]);
      let message = await stream(params);
      for (let calls = 1; calls <= 4; calls += 1) {
        assert.equal(usesOf(message).length, 1, `call ${calls}`);
        params = answered(params, message, () => ({
          content: "The hand was lost while it worked.",
          is_error: true,
        }));
        message = await stream(params);
      }
      assert.match(textIn(message), /bash failed: The hand was lost/);
      assert.equal(message.stop_reason, "end_turn");
    });

    it("gives the same answer to the same request, under new ids", async () => {
      const params = ask("Run: date", [BASH]);
      const [one, two] = [await stream(params), await stream(params)];
      assert.deepEqual(usesOf(one)[0]?.input, usesOf(two)[0]?.input);
      assert.notEqual(usesOf(one)[0]?.id, usesOf(two)[0]?.id);
    });
  });

  describe("scripts", () => {
    it("asks for several tools at once", async () => {
      const params = ask("scenario: parallel", [BASH, ECHO]);
      const message = await stream(params);
      assert.deepEqual(
        usesOf(message).map(({ name }) => name),
        ["bash", "bash", ECHO.name],
      );
      const end = await stream(answered(params, message, ({ id }) => ({ content: `answer to ${id}` })));
      for (const { id } of usesOf(message)) assert.ok(textIn(end).includes(`answer to ${id}`));
    });

    it("plays steps out of the message", async () => {
      const script = [
        { text: "First.", calls: [{ name: "bash", input: { command: "true" } }] },
        { thinking: "hm", text: "Second.", stop_reason: "end_turn" },
      ];
      const params = ask(`scenario: steps\n\`\`\`json\n${JSON.stringify(script)}\n\`\`\``, [BASH]);
      const first = await stream(params);
      assert.deepEqual(usesOf(first)[0]?.input, { command: "true" });
      const second = await stream(answered(params, first, () => ({ content: "" })));
      assert.equal(textIn(second), "Second.");
    });

    it("refuses a scenario it does not know", async () => {
      await assert.rejects(stream(ask("scenario: nonsense")), Anthropic.BadRequestError);
    });
  });
});
