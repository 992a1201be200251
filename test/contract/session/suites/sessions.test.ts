import assert from "node:assert/strict";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import {
  GetEventsRequest,
  ListSessionsRequest,
  SessionStatus,
  SortOrder,
  UpdateSessionRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import {
  emit,
  idle,
  json,
  makeFixture,
  refused,
  refusedField,
  type SessionKit,
  same,
  usage,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Records of sessions: make, read, list, change, end, remove. */
export function sessionsSuite(kit: () => SessionKit): void {
  describe("sessions", () => {
    const suite = new Suite(kit, "sessions");

    const typesOf = async (id: string) => (await suite.eventsOf(id)).map(({ type }) => type);

    it("makes an idle session that says what it was made from", async () => {
      const session = await suite.create({ title: "first", metadata: { a: "1" } });
      assert.equal(session.status, SessionStatus.SESSION_STATUS_IDLE);
      assert.equal(session.workspaceId, "wrkspc_default");
      same([session.headPosition, session.epoch, session.leaseOwner], [1n, 0n, ""]);
      const agent = JSON.parse(Buffer.from(session.agentJson).toString());
      same(
        [agent.type, agent.id, agent.version, agent.name, agent.model.id],
        ["agent", suite.fixture.agent.id, 1, "tester", "claude-test"],
      );
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId: session.id }),
      );
      const body = events[0]?.body;
      assert.equal(body?.$case, "ganglionSessionCreated");
      same(Buffer.from(body.value.agentJson), Buffer.from(session.agentJson));
      same([body.value.title, body.value.metadata], ["first", { a: "1" }]);
      assert.equal(JSON.parse(Buffer.from(body.value.environmentJson).toString()).type, "cloud");
      same(await suite.get(session.id), session);
    });

    it("begins to work at once when it is made with input", async () => {
      const session = await suite.create({ initialEvents: [userMessage("one"), userMessage("two")] });
      assert.equal(session.status, SessionStatus.SESSION_STATUS_RUNNING);
      same(await typesOf(session.id), [
        "ganglion.session_created",
        "user.message",
        "user.message",
        "session.status_running",
      ]);
    });

    it("binds vaults, servers and model at mcp-proxy before anybody sees the session", async () => {
      const { agent } = await suite.client.agents.createAgent({
        requestId: "",
        workspaceId: "",
        definitionJson: json({
          name: "m",
          model: "claude-test",
          mcp_servers: [{ type: "url", name: "notes", url: "https://notes.example/mcp" }],
          tools: [{ type: "mcp_toolset", mcp_server_name: "notes" }],
        }),
      });
      const session = await suite.create({ agentId: agent?.id ?? "", vaultIds: ["vlt_b", "vlt_a"] });
      const bound = kit().proxy.bound.at(-1);
      same(
        [bound?.sessionId, bound?.workspaceId, bound?.vaultIds, bound?.models],
        [session.id, "wrkspc_default", ["vlt_b", "vlt_a"], ["claude-test"]],
      );
      same(bound?.mcpServers, [{ name: "notes", url: "https://notes.example/mcp" }]);
      same(session.vaultIds, ["vlt_b", "vlt_a"]);
    });

    it("makes nothing when the vaults cannot be bound", async () => {
      const count = async () =>
        (await kit().sql("ganglion_owner", "SELECT count(*)::int AS n FROM session.sessions"))[0].n;
      const before = await count();
      const fail = (code: "NOT_FOUND" | "UNAVAILABLE", reason: string) => {
        kit().proxy.failure = new GanglionError({
          code,
          reason,
          message: "no",
          metadata: { vault_id: "vlt_x" },
        });
      };
      try {
        fail("NOT_FOUND", "VAULT_NOT_FOUND");
        await assert.rejects(suite.create({ vaultIds: ["vlt_x"] }), (error: GanglionError) => {
          assert.equal(error.metadata.vault_id, "vlt_x");
          return refused("FAILED_PRECONDITION", "VAULT_NOT_USABLE")(error);
        });
        fail("UNAVAILABLE", "DATABASE_UNAVAILABLE");
        await assert.rejects(suite.create(), refused("UNAVAILABLE", "PROXY_UNAVAILABLE"));
      } finally {
        kit().proxy.failure = undefined;
      }
      assert.equal(await count(), before);
    });

    it("answers a repeated request id with the same session, and refuses it with another body", async () => {
      const requestId = crypto.randomUUID();
      const metadata = { x: "1", y: "2" };
      const first = await suite.create({ requestId, metadata, initialEvents: [userMessage("hi")] });
      const again = await suite.create({
        requestId,
        metadata: { y: "2", x: "1" },
        initialEvents: [userMessage("hi")],
      });
      assert.equal(again.id, first.id);
      assert.equal(again.headPosition, 3n);
      await assert.rejects(
        suite.create({ requestId, title: "other" }),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
    });

    it("makes one session of two requests with one id at once", async () => {
      const requestId = crypto.randomUUID();
      const made = await Promise.all([1, 2, 3, 4].map(() => suite.create({ requestId })));
      assert.equal(new Set(made.map(({ id }) => id)).size, 1);
    });

    it("refuses what is not there or archived", async () => {
      await assert.rejects(suite.create({ agentId: "agent_none" }), refused("NOT_FOUND", "AGENT_NOT_FOUND"));
      await assert.rejects(suite.create({ agentVersion: 9 }), refused("NOT_FOUND", "AGENT_NOT_FOUND"));
      await assert.rejects(
        suite.create({ environmentId: "env_none" }),
        refused("NOT_FOUND", "ENVIRONMENT_NOT_FOUND"),
      );
      const other = await makeFixture(suite.client);
      await suite.client.environments.archiveEnvironment({ environmentId: other.environment.id });
      await assert.rejects(other.create(), refused("FAILED_PRECONDITION", "ENVIRONMENT_ARCHIVED"));
      await suite.client.agents.archiveAgent({ agentId: other.agent.id });
      await assert.rejects(other.create(), refused("FAILED_PRECONDITION", "AGENT_ARCHIVED"));
    });

    it("shows another workspace's session to nobody, and it looks like none at all [A140]", async () => {
      const { id: sessionId } = await suite.create();
      const absent = await suite.stranger.session
        .getSession({ sessionId: "sesn_absent" })
        .catch((error) => error);
      const foreign = await suite.stranger.session.getSession({ sessionId }).catch((error) => error);
      assert.equal(foreign.message, absent.message);
      same([foreign.code, foreign.reason], [absent.code, absent.reason]);
      const notFound = refused("NOT_FOUND", "SESSION_NOT_FOUND");
      await assert.rejects(emit(suite.stranger, sessionId, [userMessage("x")]), notFound);
      await assert.rejects(
        suite.stranger.session.getEvents(GetEventsRequest.fromPartial({ sessionId })),
        notFound,
      );
      await assert.rejects(
        suite.stranger.session.updateSession(UpdateSessionRequest.fromPartial({ sessionId, title: "x" })),
        notFound,
      );
      await assert.rejects(suite.stranger.session.archiveSession({ sessionId }), notFound);
      await assert.rejects(suite.stranger.session.deleteSession({ sessionId }), notFound);
      const watch = suite.stranger.session.watchEvents({
        sessionId,
        afterPosition: 0n,
        types: [],
        includePreviews: true,
        fromHead: false,
      });
      await assert.rejects(watch.next(), notFound);
      const { sessions } = await suite.stranger.session.listSessions(ListSessionsRequest.fromPartial({}));
      same(sessions, []);
      await assert.rejects(
        suite.stranger.session.listSessions(
          ListSessionsRequest.fromPartial({ workspaceId: "wrkspc_default" }),
        ),
        refused("NOT_FOUND", "WORKSPACE_NOT_FOUND"),
      );
      same(await typesOf(sessionId), ["ganglion.session_created"]);
      assert.equal((await suite.get(sessionId, suite.operator)).id, sessionId);
    });

    it("keeps another workspace's page token inside its own workspace [A140]", async () => {
      await Promise.all([1, 2, 3].map(() => suite.create()));
      const { nextPageToken } = await suite.client.session.listSessions(
        ListSessionsRequest.fromPartial({ pageSize: 1 }),
      );
      const { sessions } = await suite.stranger.session.listSessions(
        ListSessionsRequest.fromPartial({ pageToken: nextPageToken }),
      );
      same(sessions, []);
    });

    for (const order of [SortOrder.SORT_ORDER_ASC, SortOrder.SORT_ORDER_DESC]) {
      it(`lists every session once in pages, also those of one microsecond, order ${order} [B056, M30]`, async () => {
        const own = await makeFixture(suite.client);
        const made = await Promise.all(Array.from({ length: 7 }, () => own.create()));
        await kit().sql(
          "ganglion_owner",
          "UPDATE session.sessions SET created_at = '2026-01-01 00:00:00.123456Z' WHERE session_id = ANY ($1)",
          [made.slice(0, 5).map(({ id }) => id)],
        );
        const seen: string[] = [];
        let pageToken = "";
        do {
          const page = await suite.client.session.listSessions(
            ListSessionsRequest.fromPartial({ agentId: own.agent.id, pageSize: 2, pageToken, order }),
          );
          seen.push(...page.sessions.map(({ id }) => id));
          pageToken = page.nextPageToken;
        } while (pageToken !== "");
        same([...seen].sort(), made.map(({ id }) => id).sort());
      });
    }

    it("filters lists by agent, version, status, time and archive", async () => {
      const own = await makeFixture(suite.client);
      const idle = await own.create();
      const running = await own.create({ initialEvents: [userMessage("x")] });
      const gone = await own.create();
      await suite.client.session.archiveSession({ sessionId: gone.id });
      const list = async (more: object) => {
        const request = ListSessionsRequest.fromPartial({
          agentId: own.agent.id,
          order: SortOrder.SORT_ORDER_ASC,
          ...more,
        });
        return (await suite.client.session.listSessions(request)).sessions.map(({ id }) => id);
      };
      same(await list({}), [idle.id, running.id]);
      same(await list({ includeArchived: true }), [idle.id, running.id, gone.id]);
      same(await list({ statuses: [SessionStatus.SESSION_STATUS_RUNNING] }), [running.id]);
      same(await list({ agentVersion: 2 }), []);
      same(await list({ createdAtOrAfter: running.createTime }), [running.id]);
      same(await list({ createdBefore: running.createTime }), [idle.id]);
    });

    it("refuses a page token of another order or list [A133]", async () => {
      await Promise.all([suite.create(), suite.create()]);
      const { nextPageToken } = await suite.client.session.listSessions(
        ListSessionsRequest.fromPartial({ pageSize: 1 }),
      );
      const bad = [
        nextPageToken.slice(1),
        Buffer.from(`["sessions-","x') OR 1=1 --",""]`).toString("base64url"),
      ];
      for (const pageToken of bad) {
        await assert.rejects(
          suite.client.session.listSessions(ListSessionsRequest.fromPartial({ pageToken })),
          refusedField("page_token"),
        );
      }
      await assert.rejects(
        suite.client.session.listSessions(
          ListSessionsRequest.fromPartial({ pageToken: nextPageToken, order: SortOrder.SORT_ORDER_ASC }),
        ),
        refusedField("page_token"),
      );
    });

    it("says in the log what changed, and nothing when nothing did", async () => {
      const { id } = await suite.create({ title: "a", metadata: { k: "1", gone: "x" } });
      const session = await suite.update(id, {
        title: "b",
        metadataSet: { k: "2" },
        metadataRemove: ["gone"],
      });
      same([session.title, session.metadata, session.headPosition], ["b", { k: "2" }, 2n]);
      const repeated = await suite.update(id, {
        title: "b",
        metadataSet: { k: "2" },
        metadataRemove: ["gone"],
      });
      assert.equal(repeated.headPosition, 2n);
      await suite.update(id, { metadataRemove: ["k"] });
      const { events } = await suite.client.session.getEvents(
        GetEventsRequest.fromPartial({ sessionId: id, afterPosition: 1n }),
      );
      const requestedBy = { role: 7, subject: "apikey_test" };
      const rest = { agentJson: Buffer.alloc(0), requestedBy, isBudgetRemoved: false };
      same(
        events.map(({ body }) => body?.value),
        [
          { title: "b", metadata: { entries: { k: "2" } }, ...rest },
          { metadata: { entries: {} }, ...rest },
        ],
      );
      const many = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`k${index}`, ""]));
      await suite.update(id, { metadataSet: many });
      await assert.rejects(suite.update(id, { metadataSet: { more: "" } }), refusedField("metadata_set"));
    });

    it("archives once, revokes the tokens, and then the log can only be read", async () => {
      const { id } = await suite.create();
      const { session } = await suite.client.session.archiveSession({ sessionId: id });
      assert.equal(session?.status, SessionStatus.SESSION_STATUS_TERMINATED);
      assert.ok(session?.archiveTime);
      const again = await suite.client.session.archiveSession({ sessionId: id });
      same(again.session, session);
      same(await typesOf(id), ["ganglion.session_created", "session.status_terminated"]);
      const [fence] = await kit().sql(
        "ganglion_owner",
        "SELECT ended FROM proxy.fences WHERE session_id = $1",
        [id],
      );
      assert.equal(fence.ended, true);
      const ended = refused("FAILED_PRECONDITION", "SESSION_ENDED");
      await assert.rejects(emit(suite.client, id, [userMessage("late")]), ended);
      await assert.rejects(suite.update(id, { title: "late" }), ended);
    });

    it("neither archives nor deletes what is running", async () => {
      const { id: sessionId } = await suite.create({ initialEvents: [userMessage("x")] });
      const running = refused("FAILED_PRECONDITION", "SESSION_RUNNING");
      await assert.rejects(suite.client.session.archiveSession({ sessionId }), running);
      await assert.rejects(suite.client.session.deleteSession({ sessionId }), running);
      const [fence] = await kit().sql("ganglion_owner", "SELECT 1 FROM proxy.fences WHERE session_id = $1", [
        sessionId,
      ]);
      assert.equal(fence, undefined);
    });

    it("deletes record and log, and revokes the tokens", async () => {
      const { id: sessionId } = await suite.create();
      await emit(suite.client, sessionId, [userMessage("x")]);
      await suite.client.session.deleteSession({ sessionId });
      await assert.rejects(
        suite.client.session.getSession({ sessionId }),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      await assert.rejects(
        suite.client.session.deleteSession({ sessionId }),
        refused("NOT_FOUND", "SESSION_NOT_FOUND"),
      );
      const rows = await kit().sql(
        "ganglion_owner",
        `SELECT (SELECT count(*) FROM session.events WHERE session_id = $1)::int AS events,
           (SELECT count(*) FROM session.session_settings WHERE session_id = $1)::int AS settings,
           (SELECT ended FROM proxy.fences WHERE session_id = $1) AS ended`,
        [sessionId],
      );
      same(rows, [{ events: 0, settings: 0, ended: true }]);
    });

    it("keeps usage and stop reason of the newest turn in the record", async () => {
      const { id: sessionId } = await suite.create();
      const { epoch, headPosition: expectedPosition } = await suite.acquire(sessionId);
      const spent = usage({ inputTokens: 9_007_199_254_740_993n, outputTokens: 2n }, 12n);
      await emit(suite.harness, sessionId, [spent, idle()], { epoch, expectedPosition });
      const session = await suite.get(sessionId);
      assert.equal(session.usage?.inputTokens, 9_007_199_254_740_993n);
      same([session.activeMs, session.stopReason], [12n, { type: 1, eventIds: [] }]);
    });
  });
}
