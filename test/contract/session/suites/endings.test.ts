import assert from "node:assert/strict";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import {
  type Session,
  SessionStatus,
  WatchEventsRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import {
  emit,
  event,
  json,
  refused,
  refusedField,
  running,
  type SessionKit,
  same,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Sessions that are killed, and sessions that get other tools. */
export function endingsSuite(kit: () => SessionKit): void {
  describe("kills and changes of tools", () => {
    const suite = new Suite(kit, "endings");

    const driven = async () => {
      const { id } = await suite.create({ initialEvents: [userMessage("go")] });
      const { epoch } = await suite.acquire(id);
      return { id, epoch };
    };
    const kill = async (sessionId: string, caller = suite.client): Promise<Session> => {
      const { session } = await caller.session.killSession({ sessionId });
      assert.ok(session);
      return session;
    };
    const lastOf = async (sessionId: string) => (await suite.eventsOf(sessionId, { order: 2, limit: 1 }))[0];

    it("a kill ends a running session at once: tokens, epoch and harness", async () => {
      const { id, epoch } = await driven();
      const session = await kill(id);
      same(
        [session.status, session.epoch, session.leaseOwner],
        [SessionStatus.SESSION_STATUS_TERMINATED, epoch + 1n, ""],
      );
      same(await kit().fenceOf(id), { lowest_epoch: String(epoch + 1n), ended: true });
      same((await lastOf(id))?.body, {
        $case: "sessionStatusTerminated",
        value: { reason: "killed", requestedBy: { role: 7, subject: "apikey_test" } },
      });
      await assert.rejects(
        emit(suite.harness, id, [running()], { epoch }),
        refused("FAILED_PRECONDITION", "STALE_EPOCH"),
      );
      await assert.rejects(
        emit(suite.client, id, [userMessage("late")]),
        refused("FAILED_PRECONDITION", "SESSION_ENDED"),
      );
      await assert.rejects(
        suite.harness.session.acquireLease({ sessionId: id, bootId: suite.bootId }),
        refused("FAILED_PRECONDITION", "SESSION_ENDED"),
      );
    });

    it("a second kill changes nothing, archive and delete follow as usual", async () => {
      const { id } = await driven();
      const first = await kill(id, suite.operator);
      same(await kill(id), first);
      const { session } = await suite.client.session.archiveSession({ sessionId: id });
      assert.ok(session?.archiveTime);
      same(session.headPosition, first.headPosition);
      same(await kill(id), session);
      await suite.client.session.deleteSession({ sessionId: id });
      await assert.rejects(kill(id), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
    });

    it("another workspace's session cannot be killed and looks like none [A140]", async () => {
      const { id } = await suite.create();
      await assert.rejects(kill(id, suite.stranger), refused("NOT_FOUND", "SESSION_NOT_FOUND"));
      await assert.rejects(kill("", suite.client), refusedField("session_id"));
      assert.equal((await suite.get(id)).status, SessionStatus.SESSION_STATUS_IDLE);
    });

    it("streams end with the kill", async () => {
      const { id } = await driven();
      const types: string[] = [];
      const watching = (async () => {
        for await (const { message } of suite.client.session.watchEvents(
          WatchEventsRequest.fromPartial({ sessionId: id }),
        )) {
          if (message?.$case === "event") types.push(message.value.type);
        }
      })();
      await kill(id);
      await watching;
      assert.equal(types.at(-1), "session.status_terminated");
    });

    it("nothing is killed while the fence cannot be raised", async () => {
      const { id } = await driven();
      await kit().sql("ganglion_owner", "REVOKE EXECUTE ON FUNCTION proxy.raise_fence FROM ganglion_session");
      try {
        await assert.rejects(kill(id), refused("UNAVAILABLE", "FENCE_UNAVAILABLE"));
      } finally {
        await kit().sql("ganglion_owner", "GRANT EXECUTE ON FUNCTION proxy.raise_fence TO ganglion_session");
      }
      assert.equal((await suite.get(id)).status, SessionStatus.SESSION_STATUS_RUNNING);
      await kill(id);
    });

    const toolset = [{ type: "agent_toolset_20260401" }];
    const lookup = {
      ...{ type: "custom", name: "lookup", description: "looks up" },
      input_schema: { type: "object" },
    };

    it("replaces the tools of one session alone, resolved, with the whole agent in the log", async () => {
      const { id } = await suite.create();
      const session = await suite.update(id, { agentToolsJson: json([...toolset, lookup]) });
      const agent = JSON.parse(Buffer.from(session?.agentJson ?? "").toString());
      assert.deepEqual(
        agent.tools.map((tool: { type: string }) => tool.type),
        ["agent_toolset_20260401", "custom"],
      );
      assert.equal(agent.tools[0].configs.length, 8);
      same([agent.id, agent.version, agent.name], [suite.fixture.agent.id, 1, "tester"]);
      const event = await lastOf(id);
      assert.ok(event?.body?.$case === "sessionUpdated");
      assert.ok(Buffer.from(event.body.value.agentJson).equals(Buffer.from(session?.agentJson ?? "")));
      same([event.body.value.title, event.body.value.metadata], [undefined, undefined]);
      const again = await suite.update(id, { agentToolsJson: json([...toolset, lookup]) });
      assert.equal(again.headPosition, session.headPosition);
      const { agent: kept } = await suite.client.agents.getAgent({
        agentId: suite.fixture.agent.id,
        version: 0,
      });
      assert.deepEqual(JSON.parse(Buffer.from(kept?.definitionJson ?? "").toString()).tools, []);
      const cleared = await suite.update(id, { agentToolsJson: json([]) });
      assert.deepEqual(JSON.parse(Buffer.from(cleared?.agentJson ?? "").toString()).tools, []);
    });

    it("replaces servers and tools together, and binds the servers first", async () => {
      const { id } = await suite.create({ vaultIds: ["vlt_a"] });
      const servers = [{ type: "url", name: "notes", url: "https://notes.example/mcp" }];
      const tools = [{ type: "mcp_toolset", mcp_server_name: "notes" }];
      const change = { agentToolsJson: json(tools), agentMcpServersJson: json(servers) };
      kit().proxy.failure = new GanglionError({ code: "UNAVAILABLE", reason: "X", message: "no" });
      try {
        await assert.rejects(suite.update(id, change), refused("UNAVAILABLE", "PROXY_UNAVAILABLE"));
      } finally {
        kit().proxy.failure = undefined;
      }
      assert.equal((await lastOf(id))?.type, "ganglion.session_created");
      await suite.update(id, change);
      same(kit().proxy.bound.at(-1), {
        ...{ sessionId: id, workspaceId: "wrkspc_default", vaultIds: ["vlt_a"], models: ["claude-test"] },
        mcpServers: [{ name: "notes", url: "https://notes.example/mcp" }],
        replacesMcpServers: true,
        // What else is bound is named as it was.
        networking: { type: 1, allowedHosts: [], allowMcpServers: false, allowPackageManagers: false },
        gitRepositories: [],
      });
      const bound = kit().proxy.bound.length;
      await suite.update(id, { agentToolsJson: json([...tools, ...toolset]) });
      assert.equal(kit().proxy.bound.length, bound);
      await assert.rejects(
        suite.update(id, { agentMcpServersJson: json([]) }),
        refusedField("agent.tools[0].mcp_server_name"),
      );
    });

    it("refuses lists that no agent could have, and any while a turn is under way", async () => {
      const { id } = await suite.create();
      await assert.rejects(suite.update(id, { agentToolsJson: json({}) }), refusedField("agent_tools_json"));
      await assert.rejects(
        suite.update(id, { agentToolsJson: Buffer.from("[") }),
        refusedField("agent_tools_json"),
      );
      await assert.rejects(
        suite.update(id, { agentToolsJson: json([{ type: "computer" }]) }),
        refusedField("agent.tools[0].type"),
      );
      await assert.rejects(
        suite.update(id, { agentMcpServersJson: json([{ type: "url", name: "a", url: "file:///x" }]) }),
        refusedField("agent.mcp_servers[0].url"),
      );
      const { id: busy } = await driven();
      const change = { agentToolsJson: json(toolset) };
      await assert.rejects(suite.update(busy, change), refused("FAILED_PRECONDITION", "SESSION_RUNNING"));
      assert.equal((await suite.update(busy, { title: "while running" })).title, "while running");
    });

    it("a client's block must not nest deeper than what reads it can follow [A112]", async () => {
      const { id } = await suite.create();
      const nested = (depth: number) => `${'{"a":'.repeat(depth)}"\\"]}[{"${"}".repeat(depth)}`;
      const message = (depth: number) => {
        const value = Buffer.from(`{"type":"text","text":"[[[","x":${nested(depth)}}`);
        const block = { type: "text", data: { $case: "json" as const, value } };
        return event({ $case: "userMessage", value: { content: [block] } });
      };
      await emit(suite.client, id, [message(63)]);
      await assert.rejects(
        emit(suite.client, id, [message(64)]),
        refusedField("events[0].user_message.content[0].json"),
      );
      await assert.rejects(
        emit(suite.client, id, [message(100_000)]),
        refusedField("events[0].user_message.content[0].json"),
      );
    });
  });
}
