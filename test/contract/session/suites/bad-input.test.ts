import assert from "node:assert/strict";
import {
  CreateSessionRequest,
  GetEventsRequest,
  ListSessionsRequest,
  UpdateSessionRequest,
  WatchEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { event, json, refused, refusedField, type SessionKit, userMessage } from "../session-kit.ts";
import { Suite } from "../suite.ts";

const LONG = "x".repeat(5000);
const TIME = { seconds: -1n, nanos: 0 };

/** Malformed, missing and oversized fields: each is named, and nothing half-written stays. */
export function badInputSuite(kit: () => SessionKit): void {
  describe("bad input", () => {
    const suite = new Suite(kit, "bad-input");
    let sessionId: string;
    before(async () => {
      ({ id: sessionId } = await suite.create());
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

    each<Partial<CreateSessionRequest>>("CreateSession", (more) => suite.create(more), [
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
        suite.create({ workspaceId: "wrkspc_other" }),
        refused("NOT_FOUND", "WORKSPACE_NOT_FOUND"),
      ));
    it("CreateSession: workspace_id that does not exist", () =>
      assert.rejects(
        suite.operator.session.createSession(
          CreateSessionRequest.fromPartial({ agentId: "a", environmentId: "e", workspaceId: "wrkspc_none" }),
        ),
        refused("NOT_FOUND", "WORKSPACE_NOT_FOUND"),
      ));
    it("CreateSession: workspace_id that is no id", () =>
      assert.rejects(
        suite.operator.session.createSession(
          CreateSessionRequest.fromPartial({ agentId: "a", environmentId: "e", workspaceId: "x\0" }),
        ),
        refusedField("workspace_id"),
      ));

    each<string>("session_id", (id) => suite.client.session.getSession({ sessionId: id }), [
      ["session_id", ""],
      ["session_id", LONG],
      ["session_id", "sesn_\0"],
    ]);
    each<string>("ArchiveSession", (id) => suite.client.session.archiveSession({ sessionId: id }), [
      ["session_id", ""],
    ]);
    each<string>("DeleteSession", (id) => suite.client.session.deleteSession({ sessionId: id }), [
      ["session_id", ""],
    ]);

    each<Partial<ListSessionsRequest>>(
      "ListSessions",
      (more) => suite.client.session.listSessions(ListSessionsRequest.fromPartial(more)),
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
      (more) => suite.client.session.updateSession(UpdateSessionRequest.fromPartial({ sessionId, ...more })),
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
      (more) => suite.client.session.getEvents(GetEventsRequest.fromPartial({ sessionId, ...more })),
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
      (more) =>
        suite.client.session.watchEvents(WatchEventsRequest.fromPartial({ sessionId, ...more })).next(),
      [
        ["session_id", { sessionId: "" }],
        ["after_position", { afterPosition: -1n }],
        ["types[0]", { types: [""] }],
        ["types", { types: Array.from({ length: 65 }, () => "user.message") }],
      ],
    );

    each<object>(
      "CreateAgent",
      (body) =>
        suite.client.agents.createAgent({ requestId: "", definitionJson: json(body), workspaceId: "" }),
      [
        ["definition_json.name", { model: "m" }],
        ["definition_json.surprise", { name: "a", model: "m", surprise: 1 }],
        ["definition_json", []],
      ],
    );
    it("CreateAgent: definition_json that is too large or no JSON", async () => {
      for (const definitionJson of [Buffer.alloc((1 << 20) + 1), Buffer.from("{"), Buffer.alloc(0)]) {
        await assert.rejects(
          suite.client.agents.createAgent({ requestId: "", definitionJson, workspaceId: "" }),
          refusedField("definition_json"),
        );
      }
    });
    it("agents: other fields", async () => {
      const { agents } = suite.client;
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
      const { environments } = suite.client;
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
      const { apiKeys } = suite.operator;
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
  });
}
