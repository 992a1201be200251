import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { bodies, HarnessKit } from "./harness-kit.ts";
import { broken, httpError, send, streamed, text, use } from "./played-model.ts";

/** An agent that may call every tool of the server "notes". */
const NOTES = {
  tools: [
    {
      type: "mcp_toolset",
      mcp_server_name: "notes",
      default_config: { permission_policy: { type: "always_allow" } },
    },
  ],
  mcp_servers: [{ type: "url", name: "notes", url: "https://notes.example/mcp" }],
};

describe("a harness process", function () {
  this.timeout(120_000);
  let kit: HarnessKit;

  before(async () => {
    kit = await HarnessKit.start();
    await kit.harness("harness-1");
  });
  after(() => kit.stop());

  it("drives a session from message to idle, in the protocol's order", async () => {
    const session = await kit.newSession();
    kit.model.will(streamed("end_turn", text("Forty-two — \u{1f600}.")));
    await session.say("What is 6 × 7?");
    const events = await session.until("session.status_idle");
    assert.deepEqual(
      events.map((event) => event.type),
      [
        "ganglion.session_created",
        "user.message",
        "ganglion.lease_acquired",
        "session.status_running",
        "ganglion.context_strategy_set",
        "span.model_request_start",
        "agent.message",
        "span.model_request_end",
        "session.usage",
        "session.status_idle",
      ],
    );
    const [end] = bodies(events, "spanModelRequestEnd");
    assert.deepEqual(
      [end?.upstream, end?.usage?.inputTokens, end?.usage?.outputTokens],
      ["scripted", 7n, 9n],
    );
    assert.equal(
      String(bodies(events, "agentMessage")[0]?.block?.data?.value),
      '{"type":"text","text":"Forty-two — \u{1f600}."}',
    );
  });

  it("asks the model with its session token as the only credential, and once [A158] [M17]", async () => {
    const seen = kit.model.seen.at(-1)!;
    assert.equal(seen.url, "/v1/messages");
    assert.ok(kit.proxy.tokens.has(seen.authorization.replace("Bearer ", "")));
    assert.equal(seen.headers["x-api-key"], undefined);
    assert.equal(seen.headers["x-stainless-retry-count"], "0");
    assert.equal(kit.model.seen.length, 1);
  });

  it("shows text while it comes, under the id that the event then has", async () => {
    const session = await kit.newSession();
    const over = new AbortController();
    const messages = session.watch(over.signal);
    // The first message says where the watch begins.
    await messages.next();
    const seen = Promise.withResolvers<void>();
    kit.model.will(async (response) => {
      send(response.writeHead(200, { "content-type": "text/event-stream" }), {
        type: "message_start",
        message: { id: "m" },
      });
      send(response, { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
      send(response, { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } });
      await seen.promise;
      send(response, { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo" } });
      send(response, { type: "content_block_stop", index: 0 });
      send(response, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: {} });
      send(response, { type: "message_stop" });
      response.end();
    });
    await session.say("Say hello.");
    let previewed = "";
    for await (const { message } of messages) {
      if (message?.$case === "preview") {
        previewed = message.value.eventId;
        if (message.value.message?.$case === "text") seen.resolve();
      }
      if (message?.$case === "event" && message.value.type === "agent.message") {
        assert.equal(message.value.id, previewed);
        break;
      }
    }
    over.abort();
    await session.until("session.status_idle");
  });

  it("runs parallel tools in one hand and answers them in one message [B013] [B014]", async () => {
    const session = await kit.newSession();
    const before = kit.sandbox.provisioned;
    kit.model.will(
      streamed(
        "tool_use",
        text("Let me see."),
        use("t1", "bash", { command: "one" }),
        use("t2", "bash", { command: "two" }),
      ),
      streamed("end_turn", text("Done.")),
    );
    await session.say("Do two things.");
    const events = await session.until("session.status_idle");
    assert.equal(kit.sandbox.provisioned, before + 1);
    assert.equal(bodies(events, "agentToolResult").length, 2);
    const last = kit.model.seen.at(-1)?.body.messages.at(-1);
    assert.deepEqual(
      last?.content.map((block) => [block.type, block.tool_use_id]),
      [
        ["tool_result", "t1"],
        ["tool_result", "t2"],
      ],
    );
  });

  it("calls an MCP tool with its token and by the server's own name", async () => {
    kit.proxy.tools.set("notes", [
      {
        name: "search",
        description: "Searches.",
        inputSchemaJson: Buffer.from('{"type":"object"}'),
        outputSchemaJson: Buffer.alloc(0),
        annotationsJson: Buffer.alloc(0),
        pinSha256: Buffer.alloc(32),
      },
    ]);
    kit.proxy.answer = () => ({ outcome: 1, structuredContentJson: Buffer.from('{"found":1}') });
    const session = await kit.newSession(NOTES);
    kit.model.will(
      streamed("tool_use", use("t1", "mcp__notes__search", { q: "milk" })),
      streamed("end_turn", text("Found.")),
    );
    await session.say("Find milk.");
    const events = await session.until("session.status_idle");
    assert.equal(kit.proxy.calls.at(-1)?.name, "search");
    assert.match(String(bodies(events, "agentMcpToolResult")[0]?.content[0]?.data?.value), /found/);
  });

  it("shows how far an MCP tool is while it runs, and stores only what it came to [B092]", async () => {
    const isSeen = Promise.withResolvers<void>();
    kit.proxy.report = async function* () {
      yield { progress: 1, total: 4, message: "one of four" };
      yield { progress: 2.5, total: 0, message: "" };
    };
    kit.proxy.answer = async () => {
      await isSeen.promise;
      return { outcome: 1, structuredContentJson: Buffer.from('{"found":2}') };
    };
    const session = await kit.newSession(NOTES);
    const over = new AbortController();
    const messages = session.watch(over.signal);
    await messages.next();
    kit.model.will(
      streamed("tool_use", use("t1", "mcp__notes__search", { q: "milk" })),
      streamed("end_turn", text("Found.")),
    );
    await session.say("Find milk, slowly.");
    const seen: string[] = [];
    let callId = "";
    for await (const { message } of messages) {
      if (message?.$case === "event" && message.value.type === "agent.mcp_tool_use")
        callId = message.value.id;
      if (message?.$case === "event" && message.value.type === "agent.mcp_tool_result") break;
      if (message?.$case !== "preview" || message.value.message?.$case !== "toolProgress") continue;
      const { progress, total, message: words } = message.value.message.value;
      assert.equal(message.value.eventId, callId, "of the call that is stored already");
      seen.push(`${progress} of ${total} ${words}`);
      if (progress === 2.5) isSeen.resolve();
    }
    over.abort();
    assert.ok(["2.5 of 0 ", "1 of 4 one of four,2.5 of 0 "].includes(seen.join()), seen.join());
    const events = await session.until("session.status_idle");
    const [result] = bodies(events, "agentMcpToolResult");
    assert.equal(result?.mcpToolUseId, callId);
    assert.match(String(result?.content[0]?.data?.value), /found/);
    assert.ok(!JSON.stringify(events.map((event) => asText(event))).includes("one of four"));
  });

  for (const [how, end] of [
    ["closed cleanly", (response: ServerResponse) => response.end()],
    ["torn off", (response: ServerResponse) => setTimeout(() => response.socket?.destroy(), 50)],
  ] as const) {
    it(`commits nothing of an answer that is ${how} inside a tool's input, and asks again [B016] [M22]`, async () => {
      const session = await kit.newSession();
      const begun = kit.sandbox.begun.length;
      kit.model.will(
        broken(
          [
            { type: "content_block_start", index: 0, content_block: use("t1", "bash", {}) },
            {
              type: "content_block_delta",
              index: 0,
              delta: { type: "input_json_delta", partial_json: '{"comm' },
            },
          ],
          end,
        ),
        streamed("end_turn", text("Again.")),
      );
      await session.say("Go.");
      const events = await session.until("session.status_idle");
      assert.equal(kit.sandbox.begun.length, begun);
      assert.equal(bodies(events, "agentToolUse").length, 0);
      assert.deepEqual(
        bodies(events, "spanModelRequestEnd").map((span) => span.errorReason),
        ["MODEL_STREAM_CUT", ""],
      );
      assert.equal(bodies(events, "ganglionModelRetryScheduled").length, 1);
    });
  }

  it("takes an overload inside a stream for what it is and keeps one answer [B018] [B019] [M19]", async () => {
    const session = await kit.newSession();
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "upstream words" } };
    kit.model.will(
      broken([overloaded], (response) => response.end()),
      streamed("end_turn", text("Hi.")),
    );
    await session.say("Hello.");
    const events = await session.until("session.status_idle");
    assert.equal(bodies(events, "sessionError")[0]?.reason, "MODEL_OVERLOADED");
    assert.equal(bodies(events, "agentMessage").length, 1);
    assert.ok(!JSON.stringify(events.map((event) => asText(event))).includes("upstream words"));
  });

  it("waits as long as it is told to, once, and says until when [B020] [M18]", async () => {
    const session = await kit.newSession();
    const startedAt = Date.now();
    kit.model.will(
      httpError(429, "rate_limit_error", { "retry-after": "2" }),
      streamed("end_turn", text("Hi.")),
    );
    await session.say("Hello.");
    const events = await session.until("session.status_idle");
    assert.ok(Date.now() - startedAt >= 2000);
    const [retry] = bodies(events, "ganglionModelRetryScheduled");
    assert.equal(retry?.reason, "MODEL_RATE_LIMITED");
    assert.ok(Number(retry?.retryTime?.seconds) * 1000 >= startedAt + 1000);
    // The lease was kept meanwhile.
    assert.equal(bodies(events, "ganglionLeaseAcquired").length, 1);
  });

  it("ends the turn with the part at fault when trying again cannot help [B023]", async () => {
    const session = await kit.newSession();
    kit.model.will(httpError(403, "permission_error", { "ganglion-reason": "CRED_MISSING" }));
    await session.say("Hello.");
    const events = await session.until("session.status_idle");
    const [error] = bodies(events, "sessionError");
    assert.deepEqual([error?.reason, error?.part, error?.retryStatus], ["CRED_MISSING", 5, 2]);
  });

  it("honours an interrupt while a tool hangs within two seconds [B007]", async () => {
    const session = await kit.newSession();
    kit.sandbox.commands.set("hang", () => new Promise(() => {}));
    kit.model.will(streamed("tool_use", use("t1", "bash", { command: "hang" })));
    const begun = kit.sandbox.begun.length;
    await session.say("Hang.");
    await kit.sandbox.began(begun + 1);
    const startedAt = Date.now();
    await session.emit({ $case: "userInterrupt", value: { sessionThreadId: "" } });
    const events = await session.until("session.status_idle");
    assert.ok(Date.now() - startedAt < 2000, `${Date.now() - startedAt} ms`);
    const [result] = bodies(events, "agentToolResult");
    assert.deepEqual([result?.isError, result?.outcome], [true, 4]);
  });

  it("waits for a confirmation and runs what was allowed", async () => {
    const tools = [
      { type: "agent_toolset_20260401", default_config: { permission_policy: { type: "always_ask" } } },
    ];
    const session = await kit.newSession({ tools });
    kit.model.will(
      streamed("tool_use", use("t1", "bash", { command: "asked" })),
      streamed("end_turn", text("Done.")),
    );
    await session.say("Ask me.");
    const asked = bodies(await session.until("session.status_idle"), "sessionStatusIdle")[0]?.stopReason;
    assert.equal(asked?.type, 2);
    assert.ok(!kit.sandbox.begun.includes("asked"));
    await session.emit({
      $case: "userToolConfirmation",
      value: { toolUseId: asked!.eventIds[0]!, result: 1, denyMessage: undefined },
    });
    await session.until("session.status_idle", 2);
    assert.ok(kit.sandbox.begun.includes("asked"));
  });

  it("answers an operator who it drives, and wakes nothing that does not exist", async () => {
    const operator = await kit.operate("harness-1");
    assert.equal((await operator.listActive({})).isDraining, false);
    await assert.rejects(operator.wake({ sessionId: "sesn_none" }), { reason: "SESSION_NOT_FOUND" });
    await assert.rejects(operator.wake({ sessionId: "nonsense" }), { reason: "INVALID_FIELD" });
  });
});

function asText(event: unknown): string {
  return JSON.stringify(event, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}
