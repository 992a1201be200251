import assert from "node:assert/strict";
import {
  type EmitEventsRequest,
  GetEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { ContentBlock } from "../../../../services/gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { emit, event, json, refusedField, type SessionKit, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

const LONG = "x".repeat(5000);

/** Malformed, missing and oversized events: each field is named, and nothing half-written stays. */
export function badEventsSuite(kit: () => SessionKit): void {
  describe("bad events", () => {
    const suite = new Suite(kit, "bad-events");
    let sessionId: string;
    let epoch: bigint;
    before(async () => {
      ({ id: sessionId } = await suite.create());
      ({ epoch } = await suite.acquire(sessionId));
    });

    const each = <T>(
      what: string,
      call: (input: T) => Promise<unknown>,
      cases: [field: string, input: T][],
    ) => {
      for (const [field, input] of cases) {
        it(`${what}: ${field}`, () => assert.rejects(call(input), refusedField(field)));
      }
    };

    const ok = userMessage("x");
    each<Partial<EmitEventsRequest>>(
      "EmitEvents",
      ({ events = [ok], ...more }) => emit(suite.client, sessionId, events, more),
      [
        ["session_id", { sessionId: "" }],
        ["events", { events: [] }],
        ["events", { events: Array.from({ length: 101 }, () => ok) }],
        ["expected_position", { expectedPosition: -1n }],
        ["epoch", { epoch: 1n }],
        ["events[0].id", { events: [{ ...ok, id: "a b" }] }],
        ["events[0].id", { events: [{ ...ok, id: "x".repeat(65) }] }],
        [
          "events[1].id",
          {
            events: [
              { ...ok, id: "same" },
              { ...ok, id: "same" },
            ],
          },
        ],
        ["events[0].body", { events: [{ ...ok, body: undefined }] }],
        ["events[0].thread_id", { events: [{ ...ok, threadId: "sthr_1" }] }],
        ["events[0].traceparent", { events: [{ ...ok, traceparent: "00-1" }] }],
        ["events[0].may_ignore", { events: [{ ...ok, mayIgnore: true }] }],
        ["events[0].position", { events: [{ ...ok, position: 9n }] }],
        ["events[0].create_time", { events: [{ ...ok, createTime: { seconds: 1n, nanos: 0 } }] }],
        ["events[0].type", { events: [{ ...ok, type: "user.message" }] }],
        ["events[0].actor", { events: [{ ...ok, actor: { role: 6, subject: "me" } }] }],
        ["events[0].epoch", { events: [{ ...ok, epoch: 1n }] }],
      ],
    );

    const block = (type: string, value: object): ContentBlock => ({
      type,
      data: { $case: "json", value: json({ type, ...value }) },
    });
    const message = (...content: ContentBlock[]) => event({ $case: "userMessage", value: { content } });
    each<Event>("client events", (one) => emit(suite.client, sessionId, [one]), [
      ["events[0].user_message.content", message()],
      [
        "events[0].user_message.content",
        message(...Array.from({ length: 101 }, () => block("text", { text: "" }))),
      ],
      ["events[0].user_message.content[0].type", message(block("redacted", {}))],
      ["events[0].user_message.content[0].type", message(block("search_result", {}))],
      ["events[0].user_message.content[0].type", message(block("", {}))],
      ["events[0].user_message.content[0].json", message({ type: "text", data: undefined })],
      ["events[0].user_message.content[0].json.text", message(block("text", { text: 1 }))],
      ["events[0].user_message.content[0].json.source", message(block("image", {}))],
      [
        "events[0].user_message.content[0].json.source.type",
        message(block("image", { source: { type: "file", file_id: "f" } })),
      ],
      [
        "events[0].user_message.content[0].json.source.data",
        message(block("image", { source: { type: "base64", media_type: "image/png" } })),
      ],
      [
        "events[0].user_message.content[0].json.source.type",
        message(block("image", { source: { type: "url", url: "https://outside.example/a.png" } })),
      ],
      [
        "events[0].user_message.content[0].json.source.type",
        message(block("document", { source: { type: "url", url: "https://outside.example/a.pdf" } })),
      ],
      [
        "events[0].user_message.content[0].payload.content_type",
        message({
          type: "text",
          data: {
            $case: "payload",
            value: { payloadId: "p", sizeBytes: 1n, sha256: Buffer.alloc(32), contentType: "", excerpt: "" },
          },
        }),
      ],
      [
        "events[0].user_interrupt.session_thread_id",
        event({ $case: "userInterrupt", value: { sessionThreadId: "sthr_1" } }),
      ],
      [
        "events[0].user_tool_confirmation.tool_use_id",
        event({ $case: "userToolConfirmation", value: { toolUseId: "", result: 1, denyMessage: undefined } }),
      ],
      [
        "events[0].user_tool_confirmation.result",
        event({
          $case: "userToolConfirmation",
          value: { toolUseId: "x", result: 0, denyMessage: undefined },
        }),
      ],
      [
        "events[0].user_tool_confirmation.deny_message",
        event({ $case: "userToolConfirmation", value: { toolUseId: "x", result: 1, denyMessage: "no" } }),
      ],
      [
        "events[0].user_tool_confirmation.deny_message",
        event({ $case: "userToolConfirmation", value: { toolUseId: "x", result: 2, denyMessage: LONG } }),
      ],
      [
        "events[0].user_custom_tool_result.custom_tool_use_id",
        event({
          $case: "userCustomToolResult",
          value: { customToolUseId: "", content: [], isError: undefined },
        }),
      ],
      [
        "events[0].user_custom_tool_result.content[0].json.title",
        event({
          $case: "userCustomToolResult",
          value: {
            customToolUseId: "x",
            content: [block("search_result", { source: "s" })],
            isError: undefined,
          },
        }),
      ],
      [
        "events[0].user_custom_tool_result.content[0].json.source.type",
        event({
          $case: "userCustomToolResult",
          value: {
            customToolUseId: "x",
            content: [block("image", { source: { type: "url", url: "https://outside.example/" } })],
            isError: undefined,
          },
        }),
      ],
      [
        "events[0].user_custom_tool_result.content[0].json.content[1].source.type",
        event({
          $case: "userCustomToolResult",
          value: {
            customToolUseId: "x",
            content: [
              block("search_result", {
                source: "s",
                title: "t",
                content: [{}, { source: { type: "file" } }],
              }),
            ],
            isError: undefined,
          },
        }),
      ],
    ]);

    const open = (type: string) =>
      event({ $case: "open", value: { type, data: Buffer.alloc(0), contentType: "" } });
    const toolUse = {
      block: block("tool_use", {}),
      modelRequestStartId: "s",
      blockIndex: 0,
      providerCallId: "p",
      name: "bash",
      inputJson: json({}),
      permission: 1,
      policy: "",
      evaluationReason: "",
      evaluator: "",
    } as const;
    const result = {
      toolUseId: "x",
      content: [],
      isError: false,
      outcome: 1,
      handId: "",
      durationMs: undefined,
      fullOutput: undefined,
    } as const;
    each<Event>(
      "harness events",
      (one) => emit(suite.harness, sessionId, [one], { epoch, expectedPosition: 2n }),
      [
        [
          "events[0].agent_message.block",
          event({
            $case: "agentMessage",
            value: { block: undefined, modelRequestStartId: "s", blockIndex: 0 },
          }),
        ],
        [
          "events[0].agent_message.model_request_start_id",
          event({
            $case: "agentMessage",
            value: { block: block("text", {}), modelRequestStartId: "", blockIndex: 0 },
          }),
        ],
        [
          "events[0].agent_thinking.block_index",
          event({
            $case: "agentThinking",
            value: { block: block("thinking", {}), modelRequestStartId: "s", blockIndex: -1 },
          }),
        ],
        ["events[0].agent_tool_use.name", event({ $case: "agentToolUse", value: { ...toolUse, name: "" } })],
        [
          "events[0].agent_tool_use.input_json",
          event({ $case: "agentToolUse", value: { ...toolUse, inputJson: Buffer.alloc(0) } }),
        ],
        [
          "events[0].agent_tool_use.permission",
          event({ $case: "agentToolUse", value: { ...toolUse, permission: 0 } }),
        ],
        [
          "events[0].agent_mcp_tool_use.mcp_server_name",
          event({ $case: "agentMcpToolUse", value: { ...toolUse, mcpServerName: "" } }),
        ],
        [
          "events[0].agent_tool_result.tool_use_id",
          event({ $case: "agentToolResult", value: { ...result, toolUseId: "", content: [] } }),
        ],
        [
          "events[0].agent_tool_result.outcome",
          event({ $case: "agentToolResult", value: { ...result, outcome: 0, content: [] } }),
        ],
        [
          "events[0].agent_tool_result.duration_ms",
          event({ $case: "agentToolResult", value: { ...result, durationMs: -1n, content: [] } }),
        ],
        [
          "events[0].session_status_idle.stop_reason.type",
          event({ $case: "sessionStatusIdle", value: { stopReason: undefined, stopDetails: undefined } }),
        ],
        [
          "events[0].session_status_idle.stop_reason.event_ids",
          event({
            $case: "sessionStatusIdle",
            value: { stopReason: { type: 2, eventIds: [] }, stopDetails: undefined },
          }),
        ],
        [
          "events[0].session_status_terminated.reason",
          event({ $case: "sessionStatusTerminated", value: { reason: "" } }),
        ],
        [
          "events[0].session_usage.usage",
          event({ $case: "sessionUsage", value: { usage: undefined, activeMs: 0n } }),
        ],
        [
          "events[0].session_error.message",
          event({
            $case: "sessionError",
            value: {
              errorType: "x",
              message: LONG,
              part: 1,
              retryStatus: 1,
              mcpServerName: "",
              reason: "",
              repositoryUrl: "",
            },
          }),
        ],
        [
          "events[0].session_error.part",
          event({
            $case: "sessionError",
            value: {
              errorType: "x",
              message: "m",
              part: 0,
              retryStatus: 1,
              mcpServerName: "",
              reason: "",
              repositoryUrl: "",
            },
          }),
        ],
        [
          "events[0].span_model_request_start.model",
          event({
            $case: "spanModelRequestStart",
            value: {
              consumedPosition: 0n,
              model: "",
              contextStrategy: "",
              requestSha256: Buffer.alloc(0),
              attempt: 1,
              purpose: 0,
              stablePrefixBytes: 0n,
              stablePrefixSha256: Buffer.alloc(0),
            },
          }),
        ],
        ["events[0].open.type", open("user.sneaky")],
        ["events[0].open.type", open("agent.message")],
        ["events[0].open.type", open("ganglion.x")],
        ["events[0].open.type", open("A")],
      ],
    );

    it("none of this left anything in the log", async () => {
      const { headPosition } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId }),
      );
      assert.equal(headPosition, 2n);
    });
  });
}
