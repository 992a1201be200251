import assert from "node:assert/strict";
import { modelErrorOf } from "../../../services/harness/model/model-error.ts";
import { type AnswerProgress, readAnswer } from "../../../services/harness/model/read-answer.ts";
import { readSse } from "../../../services/harness/model/read-sse.ts";
import { ModelError } from "../../../services/harness/ports/model.ts";

const START =
  '{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":7,"output_tokens":1}}}';
const STOP = '{"type":"message_stop"}';
const ended = (reason: string): string =>
  `{"type":"message_delta","delta":{"stop_reason":"${reason}","stop_sequence":null},"usage":{"output_tokens":9}}`;
const begin = (index: number, block: string): string =>
  `{"type":"content_block_start","index":${index},"content_block":${block}}`;
const delta = (index: number, body: string): string =>
  `{"type":"content_block_delta","index":${index},"delta":${body}}`;
const end = (index: number): string => `{"type":"content_block_stop","index":${index}}`;

describe("reading an answer", () => {
  it("keeps every byte of what was sent: escapes, key order, unknown fields, big numbers [B008] [B010]", async () => {
    const { blocks } = await read([
      START,
      begin(0, '{"signature":"","type":"thinking","thinking":"","x":9007199254740993}'),
      delta(0, '{"type":"thinking_delta","thinking":"caf\\u00e9 \\/ "}'),
      delta(0, '{"type":"thinking_delta","thinking":"\\ud83d"}'),
      delta(0, '{"type":"thinking_delta","thinking":"\\ude00"}'),
      delta(0, '{"type":"signature_delta","signature":"Eq\\/=="}'),
      end(0),
      begin(1, '{"type":"redacted_thinking","data":"EmwK"}'),
      end(1),
      begin(2, '{"type":"text","text":""}'),
      end(2),
      begin(3, '{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}'),
      delta(3, '{"type":"input_json_delta","partial_json":""}'),
      delta(3, '{"type":"input_json_delta","partial_json":"{ \\"a\\": 1e2,"}'),
      delta(3, '{"type":"input_json_delta","partial_json":" \\"a\\": 2 }"}'),
      end(3),
      ended("tool_use"),
      STOP,
    ]);
    assert.deepEqual(
      blocks.map((block) => block.json),
      [
        '{"signature":"Eq\\/==","type":"thinking","thinking":"caf\\u00e9 \\/ \\ud83d\\ude00","x":9007199254740993}',
        '{"type":"redacted_thinking","data":"EmwK"}',
        '{"type":"text","text":""}',
        '{"type":"tool_use","id":"toolu_1","name":"bash","input":{ "a": 1e2, "a": 2 }}',
      ],
    );
    assert.deepEqual(blocks[3]?.call, {
      providerCallId: "toolu_1",
      name: "bash",
      inputJson: '{ "a": 1e2, "a": 2 }',
    });
  });

  it("keeps the text of an input that is no JSON, and replays an empty one [M20] [M21]", async () => {
    for (const half of ['{\\"command\\":\\"rm -r', '{\\"command\\":\\"a\nb\\"}'.replace("\n", "\\n")]) {
      const { blocks } = await read([
        START,
        begin(0, '{"type":"tool_use","id":"t","name":"bash","input":{}}'),
        delta(0, `{"type":"input_json_delta","partial_json":"${half}"}`),
        end(0),
        ended("max_tokens"),
        STOP,
      ]);
      assert.equal(blocks[0]?.json, '{"type":"tool_use","id":"t","name":"bash","input":{}}');
      assert.equal(blocks[0]?.call?.inputJson, JSON.parse(`"${half}"`));
    }
  });

  it("joins citations", async () => {
    const { blocks } = await read([
      START,
      begin(0, '{"type":"text","text":"","citations":[]}'),
      delta(0, '{"type":"citations_delta","citation":{"type":"c","n":1}}'),
      delta(0, '{"type":"citations_delta","citation":{"type":"c","n":2}}'),
      end(0),
      ended("end_turn"),
      STOP,
    ]);
    assert.equal(
      blocks[0]?.json,
      '{"type":"text","text":"","citations":[{"type":"c","n":1},{"type":"c","n":2}]}',
    );
  });

  for (const [how, events] of [
    [
      "in the middle of a tool's input",
      [START, begin(0, '{"type":"tool_use","id":"t","name":"b","input":{}}')],
    ],
    ["after its blocks, before it said why", [START, begin(0, '{"type":"text","text":""}'), end(0)]],
    ["without its end", [START, begin(0, '{"type":"text","text":""}'), end(0), ended("end_turn")]],
    ["before it began", []],
  ] as const) {
    it(`counts nothing of an answer that stops ${how} [B016] [M22]`, async () => {
      await assert.rejects(read([...events]), (error: unknown) => {
        assert.ok(error instanceof ModelError);
        return error.facts.reason === "MODEL_STREAM_CUT" && error.facts.isRetryable;
      });
    });
  }

  it("knows an overload that comes inside a stream by its type [B018] [M19]", async () => {
    const overloaded = '{"type":"error","error":{"type":"overloaded_error","message":"secret words"}}';
    await assert.rejects(read([START, overloaded]), (error: unknown) => {
      assert.ok(error instanceof ModelError);
      assert.ok(!JSON.stringify(error.facts).includes("secret words"));
      return error.facts.reason === "MODEL_OVERLOADED" && error.facts.isRetryable;
    });
  });

  it("fails closed on a kind of delta that it does not know", async () => {
    const odd = [START, begin(0, '{"type":"text","text":""}'), delta(0, '{"type":"hologram_delta","h":1}')];
    await assert.rejects(
      read(odd),
      (error: unknown) => error instanceof ModelError && !error.facts.isRetryable,
    );
  });

  it("is whole at message_stop, and reads on to the end so that the connection can be used again", async () => {
    const [mayEnd, hasEnded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield Buffer.from([START, ended("end_turn"), STOP].map((data) => `data: ${data}\n\n`).join(""));
      await mayEnd.promise;
      hasEnded.resolve();
    }
    const progress: AnswerProgress = { usage: undefined, firstTokenMs: undefined };
    const listener = { onBlockStart: () => {}, onText: () => {} };
    const answer = await readAnswer(readSse(stream()), listener, progress, () => 1);
    assert.equal(answer.stopReason, "end_turn");
    mayEnd.resolve();
    await hasEnded.promise;
  });

  it("adds up usage over the stream", async () => {
    const progress: AnswerProgress = { usage: undefined, firstTokenMs: undefined };
    await read([START, ended("end_turn"), STOP], progress);
    assert.deepEqual([progress.usage?.inputTokens, progress.usage?.outputTokens], [7n, 9n]);
  });
});

describe("answers that are errors", () => {
  for (const [status, reason, isRetryable] of [
    [529, "MODEL_OVERLOADED", true],
    [429, "MODEL_RATE_LIMITED", true],
    [500, "MODEL_FAILED", true],
    [401, "MODEL_UNAUTHORIZED", false],
    [400, "MODEL_REQUEST_REJECTED", false],
    [402, "MODEL_BILLING", false],
  ] as const) {
    it(`keep a reason of their own: ${status} [B023] [M17]`, () => {
      const { facts } = modelErrorOf({ status, body: {}, headers: new Headers({ "retry-after": "171" }) });
      assert.deepEqual([facts.reason, facts.isRetryable], [reason, isRetryable]);
      // Only where a retry helps is it said when.
      assert.equal(facts.retryAfterMs, isRetryable ? 171_000 : undefined);
    });
  }

  it("blame the harness for a request that it built wrongly [B023]", () => {
    assert.equal(modelErrorOf({ status: 400, body: {}, headers: undefined }).facts.part, 1);
  });
});

async function read(
  events: readonly string[],
  progress: AnswerProgress = { usage: undefined, firstTokenMs: undefined },
): ReturnType<typeof readAnswer> {
  const bytes = Buffer.from(events.map((data) => `event: x\r\ndata: ${data}\r\n\r\n`).join(""));
  const listener = { onBlockStart: () => {}, onText: () => {} };
  return readAnswer(readSse(oneByOne(bytes)), listener, progress, () => 1);
}

/** The worst way in which bytes can come. */
async function* oneByOne(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (const byte of bytes) yield Uint8Array.of(byte);
}
