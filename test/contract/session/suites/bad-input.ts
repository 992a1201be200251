import assert from "node:assert/strict";
import {
  CreateSessionRequest,
  type EmitEventsRequest,
  GetEventsRequest,
  ListSessionsRequest,
  UpdateSessionRequest,
  WatchEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import type { ContentBlock } from "../../../../services/gen/ganglion/types/v1/content.ts";
import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import {
  type Caller,
  emit,
  event,
  json,
  makeFixture,
  refused,
  refusedField,
  type SessionKit,
  userMessage,
} from "../session-kit.ts";

const LONG = "x".repeat(5000);
const TIME = { seconds: -1n, nanos: 0 };

/** Malformed, missing and oversized fields: each is named, and nothing half-written stays. */
export function badInputSuite(kit: () => SessionKit): void {
  describe("bad input", () => {
    let client: Caller;
    let operator: Caller;
    let harness: Caller;
    let sessionId: string;
    let epoch: bigint | undefined;
    let fixture: Awaited<ReturnType<typeof makeFixture>>;
    before(async () => {
      client = await kit().asClient();
      operator = await kit().as("operator");
      harness = await kit().as("harness", "harness-bad");
      fixture = await makeFixture(client);
      ({ id: sessionId } = await fixture.create());
      const bootId = "boot-for-bad-input-1";
      await harness.session.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: false });
      epoch = (await harness.session.acquireLease({ sessionId, bootId })).lease?.epoch;
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

    each<Partial<CreateSessionRequest>>("CreateSession", (more) => fixture.create(more), [
      ["request_id", { requestId: LONG }],
      ["agent_id", { agentId: "" }],
      ["agent_id", { agentId: "a\0b" }],
      ["agent_version", { agentVersion: -1 }],
      ["environment_id", { environmentId: "' OR 1=1 --" }],
      ["title", { title: "x".repeat(257) }],
      ["title", { title: "nul \0" }],
      ["metadata", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ""])) }],
      ["metadata", { metadata: { [LONG]: "" } }],
      ["metadata.k", { metadata: { k: "x".repeat(513) } }],
      ["vault_ids", { vaultIds: Array.from({ length: 21 }, (_, n) => `vlt_${n}`) }],
      ["vault_ids[1]", { vaultIds: ["vlt_a", "vlt_a"] }],
      ["initial_events", { initialEvents: Array.from({ length: 51 }, () => userMessage("x")) }],
      [
        "initial_events[0].body",
        { initialEvents: [event({ $case: "userInterrupt", value: { sessionThreadId: "" } })] },
      ],
      [
        "initial_events[0].user_message.content",
        { initialEvents: [event({ $case: "userMessage", value: { content: [] } })] },
      ],
    ]);

    it("CreateSession: workspace_id of another workspace", () =>
      assert.rejects(
        fixture.create({ workspaceId: "wrkspc_other" }),
        refused("NOT_FOUND", "WORKSPACE_NOT_FOUND"),
      ));
    it("CreateSession: workspace_id that is no id", () =>
      assert.rejects(
        operator.session.createSession(
          CreateSessionRequest.fromPartial({ agentId: "a", environmentId: "e", workspaceId: "x\0" }),
        ),
        refusedField("workspace_id"),
      ));

    each<string>("session_id", (id) => client.session.getSession({ sessionId: id }), [
      ["session_id", ""],
      ["session_id", LONG],
      ["session_id", "sesn_\0"],
    ]);
    each<string>("ArchiveSession", (id) => client.session.archiveSession({ sessionId: id }), [
      ["session_id", ""],
    ]);
    each<string>("DeleteSession", (id) => client.session.deleteSession({ sessionId: id }), [
      ["session_id", ""],
    ]);

    each<Partial<ListSessionsRequest>>(
      "ListSessions",
      (more) => client.session.listSessions(ListSessionsRequest.fromPartial(more)),
      [
        ["page_size", { pageSize: 101 }],
        ["page_size", { pageSize: -1 }],
        ["page_token", { pageToken: "é" }],
        ["agent_id", { agentId: "a') OR 1=1 --" }],
        ["agent_version", { agentVersion: 1 }],
        ["statuses", { statuses: [1, 1, 1, 1, 1] }],
        ["statuses[0]", { statuses: [0] }],
        ["order", { order: 9 as never }],
        ["created_at_or_after", { createdAtOrAfter: TIME }],
        ["created_before", { createdBefore: { seconds: 10n ** 15n, nanos: 0 } }],
        ["workspace_id", { workspaceId: "nope" }],
      ],
    );

    each<Partial<UpdateSessionRequest>>(
      "UpdateSession",
      (more) => client.session.updateSession(UpdateSessionRequest.fromPartial({ sessionId, ...more })),
      [
        ["session_id", { sessionId: "" }],
        ["title", { title: LONG }],
        ["metadata_set", { metadataSet: { "": "x" } }],
        ["metadata_set.k", { metadataSet: { k: "\0" } }],
        ["metadata_remove", { metadataRemove: Array.from({ length: 17 }, (_, n) => `k${n}`) }],
        ["metadata_remove[0]", { metadataSet: { k: "1" }, metadataRemove: ["k"] }],
      ],
    );

    each<Partial<GetEventsRequest>>(
      "GetEvents",
      (more) => client.session.getEvents(GetEventsRequest.fromPartial({ sessionId, ...more })),
      [
        ["session_id", { sessionId: "" }],
        ["after_position", { afterPosition: -1n }],
        ["before_position", { beforePosition: -1n }],
        ["limit", { limit: 1001 }],
        ["max_bytes", { maxBytes: 3_145_729 }],
        ["types", { types: Array.from({ length: 65 }, () => "user.message") }],
        ["types[0]", { types: ["a'b"] }],
        ["order", { order: 7 as never }],
        ["around_count", { aroundCount: 1 }],
        ["around_count", { aroundEventId: "x", aroundCount: 101 }],
        ["around_event_id", { aroundEventId: "a b" }],
        ["after_position", { aroundEventId: "x", afterPosition: 1n }],
        ["before_position", { aroundEventId: "x", beforePosition: 1n }],
      ],
    );

    each<Partial<WatchEventsRequest>>(
      "WatchEvents",
      (more) => client.session.watchEvents(WatchEventsRequest.fromPartial({ sessionId, ...more })).next(),
      [
        ["session_id", { sessionId: "" }],
        ["after_position", { afterPosition: -1n }],
        ["types[0]", { types: [""] }],
        ["types", { types: Array.from({ length: 65 }, () => "user.message") }],
      ],
    );

    const ok = userMessage("x");
    each<Partial<EmitEventsRequest>>(
      "EmitEvents",
      ({ events = [ok], ...more }) => emit(client, sessionId, events, more),
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
    each<Event>("client events", (one) => emit(client, sessionId, [one]), [
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
        "events[0].user_message.content[0].json.source.url",
        message(block("document", { source: { type: "url" } })),
      ],
      [
        "events[0].user_message.content[0].payload",
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
    each<Event>("harness events", (one) => emit(harness, sessionId, [one], { epoch, expectedPosition: 2n }), [
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
          value: { errorType: "x", message: LONG, part: 1, retryStatus: 1, mcpServerName: "", reason: "" },
        }),
      ],
      [
        "events[0].session_error.part",
        event({
          $case: "sessionError",
          value: { errorType: "x", message: "m", part: 0, retryStatus: 1, mcpServerName: "", reason: "" },
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
          },
        }),
      ],
      ["events[0].open.type", open("user.sneaky")],
      ["events[0].open.type", open("agent.message")],
      ["events[0].open.type", open("ganglion.x")],
      ["events[0].open.type", open("A")],
    ]);

    each<object>(
      "CreateAgent",
      (body) => client.agents.createAgent({ requestId: "", definitionJson: json(body), workspaceId: "" }),
      [
        ["definition_json.name", { model: "m" }],
        ["definition_json.surprise", { name: "a", model: "m", surprise: 1 }],
        ["definition_json", []],
      ],
    );
    it("CreateAgent: definition_json that is too large or no JSON", async () => {
      for (const definitionJson of [Buffer.alloc((1 << 20) + 1), Buffer.from("{"), Buffer.alloc(0)]) {
        await assert.rejects(
          client.agents.createAgent({ requestId: "", definitionJson, workspaceId: "" }),
          refusedField("definition_json"),
        );
      }
    });
    it("agents: other fields", async () => {
      const { agents } = client;
      await assert.rejects(
        agents.createAgent({ requestId: LONG, definitionJson: json({}), workspaceId: "" }),
        refusedField("request_id"),
      );
      await assert.rejects(agents.getAgent({ agentId: "", version: 0 }), refusedField("agent_id"));
      await assert.rejects(agents.getAgent({ agentId: "a", version: -1 }), refusedField("version"));
      await assert.rejects(agents.archiveAgent({ agentId: "" }), refusedField("agent_id"));
      await assert.rejects(
        agents.listAgentVersions({ agentId: "a", pageSize: 101, pageToken: "" }),
        refusedField("page_size"),
      );
      await assert.rejects(
        agents.listAgentVersions({ agentId: "a", pageSize: 0, pageToken: "v0" }),
        refusedField("page_token"),
      );
      await assert.rejects(
        agents.updateAgent({ agentId: "a", expectedVersion: -1, patchJson: json({}) }),
        refusedField("expected_version"),
      );
      await assert.rejects(
        agents.updateAgent({ agentId: "a", expectedVersion: 0, patchJson: Buffer.alloc(0) }),
        refusedField("patch_json"),
      );
    });
    it("environments: fields", async () => {
      const { environments } = client;
      const create = (environmentJson: Buffer) =>
        environments.createEnvironment({ requestId: "", environmentJson, workspaceId: "" });
      await assert.rejects(create(Buffer.alloc((256 << 10) + 1)), refusedField("environment_json"));
      await assert.rejects(create(json({ name: "" })), refusedField("environment_json.name"));
      await assert.rejects(
        create(json({ name: "x", config: { type: "self_hosted" } })),
        refusedField("environment_json.config.type"),
      );
      await assert.rejects(
        environments.getEnvironment({ environmentId: "" }),
        refusedField("environment_id"),
      );
      await assert.rejects(
        environments.updateEnvironment({ environmentId: "", patchJson: json({}) }),
        refusedField("environment_id"),
      );
      await assert.rejects(
        environments.archiveEnvironment({ environmentId: "\0" }),
        refusedField("environment_id"),
      );
      await assert.rejects(
        environments.deleteEnvironment({ environmentId: "" }),
        refusedField("environment_id"),
      );
      const list = { pageSize: 101, pageToken: "", includeArchived: false, workspaceId: "" };
      await assert.rejects(environments.listEnvironments(list), refusedField("page_size"));
    });
    it("API keys: fields", async () => {
      const { apiKeys } = operator;
      const good = { keySha256: Buffer.alloc(32), name: "n", workspaceId: "" };
      await assert.rejects(
        apiKeys.createApiKey({ ...good, keySha256: Buffer.alloc(31) }),
        refusedField("key_sha256"),
      );
      await assert.rejects(apiKeys.createApiKey({ ...good, name: "" }), refusedField("name"));
      await assert.rejects(apiKeys.createApiKey({ ...good, name: LONG }), refusedField("name"));
      await assert.rejects(
        apiKeys.createApiKey({ ...good, workspaceId: "x y" }),
        refusedField("workspace_id"),
      );
      await assert.rejects(
        apiKeys.listApiKeys({ pageSize: -1, pageToken: "", workspaceId: "" }),
        refusedField("page_size"),
      );
      await assert.rejects(apiKeys.revokeApiKey({ apiKeyId: "" }), refusedField("api_key_id"));
    });

    it("none of this left anything in the log", async () => {
      const { headPosition } = await client.session.getEvents(GetEventsRequest.fromPartial({ sessionId }));
      assert.equal(headPosition, 2n);
    });
  });
}
