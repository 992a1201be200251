import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import { type Ask, ask, textIn, usesOf, WRITE } from "./model-requests.ts";

describe("scripted model when things go wrong", () => {
  let model: TestModel;
  let client: Anthropic;

  before(async () => {
    model = await startScriptedModel();
    client = new Anthropic({ baseURL: model.url, apiKey: model.apiKey, maxRetries: 0 });
  });
  after(() => model.stop());

  const stream = (params: Ask) => client.messages.stream(params).finalMessage();

  for (const [status, type] of [
    [429, "rate_limit_error"],
    [529, "overloaded_error"],
    [500, "api_error"],
    [400, "invalid_request_error"],
    [401, "authentication_error"],
  ] as const) {
    it(`[M17] answers ${status} once, then recovers`, async () => {
      const params = ask(`scenario: error status=${status}`);
      await assert.rejects(stream(params), (error) => {
        assert.ok(error instanceof Anthropic.APIError);
        assert.deepEqual([error.status, error.type], [status, type]);
        return true;
      });
      assert.match(textIn(await stream(params)), /Recovered at attempt 2/);
    });
  }

  it("[M18] sends retry-after with a 429", async () => {
    await assert.rejects(stream(ask("scenario: error status=429 retryAfter=171")), (error) => {
      assert.ok(error instanceof Anthropic.RateLimitError);
      assert.equal(error.headers.get("retry-after"), "171");
      return true;
    });
  });

  it("[M19] sends an error event after 200, before or after text", async () => {
    for (const after of [0, 200]) {
      const params = ask(`scenario: sse-error after=${after}`);
      let deltas = 0;
      const events = client.messages.stream(params).on("streamEvent", ({ type }) => {
        if (type === "content_block_delta") deltas += 1;
      });
      await assert.rejects(events.finalMessage(), (error) => {
        assert.ok(error instanceof Anthropic.APIError);
        assert.deepEqual([error.status, error.type], [undefined, "overloaded_error"]);
        return true;
      });
      assert.equal(deltas, after);
      assert.match(textIn(await stream(params)), /Recovered/);
    }
  });

  for (const how of ["end", "fin", "rst"]) {
    it(`[M22] breaks off in the middle of a tool's input (${how}), then completes the call`, async () => {
      const params = ask(`scenario: cut how=${how} after=30`, [WRITE]);
      let deltas = 0;
      const events = client.messages.stream(params).on("inputJson", () => {
        deltas += 1;
      });
      await assert.rejects(events.finalMessage());
      assert.equal(deltas, 30);
      const whole = await stream(params);
      assert.equal(usesOf(whole)[0]?.name, "write");
    });
  }

  it("goes silent and notices when its reader leaves", async () => {
    const params = ask("scenario: stall after=2 id=stall");
    const events = client.messages.stream(params);
    const failed = assert.rejects(events.finalMessage(), Anthropic.APIUserAbortError);
    await model.journal.waitFor(({ kind, scenario }) => kind === "first_delta" && scenario === "stall");
    events.abort();
    await failed;
    const end = await model.journal.waitFor(({ kind, scenario }) => kind === "end" && scenario === "stall");
    assert.equal(end.ending, "stalled");
  });

  it("[M20] ends in the middle of a tool's input with max_tokens, then completes the call", async () => {
    const params = ask("scenario: max-tokens", [WRITE]);
    const message = await stream(params);
    assert.equal(message.stop_reason, "max_tokens");
    assert.deepEqual(usesOf(message)[0]?.input, { file_path: "big.txt" }, "half of an input, and no error");
    const whole = await stream(params);
    assert.equal(whole.stop_reason, "tool_use");
    assert.deepEqual(Object.keys(usesOf(whole)[0]?.input as object), ["file_path", "content"]);
  });

  it("[M21] sends tool JSON with a raw line break, then completes the call", async () => {
    const params = ask("scenario: bad-json", [WRITE]);
    await assert.rejects(stream(params), /control character|JSON/);
    assert.equal((await stream(params)).stop_reason, "tool_use");
  });

  it("[M23] ends with any stop reason, pauses and goes on, refuses, and sends blocks nobody knows", async () => {
    for (const reason of ["model_context_window_exceeded", "stop_sequence", "something_new"]) {
      assert.equal((await stream(ask(`scenario: stop reason=${reason}`))).stop_reason, reason);
    }
    assert.equal((await stream(ask("scenario: truncated-text"))).stop_reason, "max_tokens");
    const refused = await stream(ask("scenario: refusal"));
    assert.deepEqual([refused.stop_reason, refused.stop_details?.type], ["refusal", "refusal"]);
    assert.deepEqual((await stream(ask("scenario: empty"))).content, []);
    const unknown = await stream(ask("scenario: unknown-block"));
    assert.deepEqual(
      unknown.content.map(({ type }) => type as string),
      ["text", "hologram", "text"],
    );
    const params = ask("scenario: pause-turn");
    const paused = await stream(params);
    assert.equal(paused.stop_reason, "pause_turn");
    const sentBack = {
      role: "assistant" as const,
      content: paused.content as Anthropic.ContentBlockParam[],
    };
    const end = await stream({ ...params, messages: [...params.messages, sentBack] });
    assert.equal(textIn(end), "Second half, after the pause.");
  });
});
