import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import {
  ForkSessionRequest,
  SessionStatus,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { put, read, refTo } from "../payload-calls.ts";
import {
  emit,
  event,
  idle,
  json,
  refused,
  refusedField,
  running,
  type SessionKit,
  same,
  usage,
  userMessage,
} from "../session-kit.ts";
import { Suite } from "../suite.ts";

/** Sessions made from other sessions' logs. */
export function forksSuite(kit: () => SessionKit): void {
  describe("forks", () => {
    const suite = new Suite(kit, "forks");

    const fork = async (sessionId: string, more: Partial<ForkSessionRequest> = {}, caller = suite.client) => {
      const { session } = await caller.session.forkSession(
        ForkSessionRequest.fromPartial({ sessionId, ...more }),
      );
      assert.ok(session);
      return session;
    };
    // A log with two turns: 1 created, 2 message, 3 lease, 4 running, 5 usage, 6 idle, 7 updated, 8 message, 9 running.
    const twoTurns = async () => {
      const { id } = await suite.create({ title: "source", metadata: { a: "1" } });
      await emit(suite.client, id, [userMessage("first")]);
      const { epoch } = await suite.acquire(id);
      await emit(suite.harness, id, [running(), usage({ inputTokens: 10n, outputTokens: 1n }, 5n, 30n)], {
        epoch,
      });
      await emit(suite.harness, id, [idle()], { epoch, expectedPosition: 5n });
      await suite.update(id, { title: "renamed", metadataSet: { b: "2" } });
      await emit(suite.client, id, [userMessage("second")]);
      await emit(suite.harness, id, [running()], { epoch });
      return { id, epoch };
    };

    it("begins as its source did, byte for byte, and says where it comes from", async () => {
      const { id, epoch } = await twoTurns();
      const made = await fork(id, { position: 8n });
      const [source, copied] = await Promise.all([suite.eventsOf(id), suite.eventsOf(made.id)]);
      same(copied.slice(1, 8), source.slice(1, 8));
      const digests = (session: string) =>
        kit().sql(
          "ganglion_owner",
          `SELECT position, event_id, type, epoch, actor_role, actor_subject, traceparent, body, body_digest, created_at::text
             FROM session.events WHERE session_id = $1 AND position BETWEEN 2 AND 8 ORDER BY position`,
          [session],
        );
      assert.deepEqual(await digests(made.id), await digests(id));
      const [first, original] = [copied[0]?.body, source[0]?.body];
      assert.ok(first?.$case === "ganglionSessionCreated" && original?.$case === "ganglionSessionCreated");
      assert.notEqual(copied[0]?.id, source[0]?.id);
      same(first.value, {
        ...original.value,
        forkedFromSessionId: id,
        forkedAtPosition: 8n,
        requestedBy: { role: 7, subject: "apikey_test" },
      });
      same(copied[8]?.type, "ganglion.session_forked");
      same(copied[8]?.body?.value, {
        sourceSessionId: id,
        sourcePosition: 8n,
        requestedBy: { role: 7, subject: "apikey_test" },
      });
      same([copied.length, made.headPosition], [9, 9n]);
      same([made.forkedFromSessionId, made.forkedAtPosition], [id, 8n]);
      same([made.epoch, made.leaseOwner, made.archiveTime], [epoch, "", undefined]);
    });

    it("has the record that its log comes to at every position", async () => {
      const { id } = await twoTurns();
      const at = async (position: bigint) => {
        const made = await fork(id, { position });
        const { status, title, metadata, usage: used, activeMs, stopReason, listCostMicrocents } = made;
        const [row] = await kit().sql(
          "ganglion_owner",
          "SELECT runnable, runnable_at IS NOT NULL AS since FROM session.sessions WHERE session_id = $1",
          [made.id],
        );
        assert.equal(row.runnable, row.since);
        const cost = [used?.inputTokens, activeMs, listCostMicrocents];
        return { status, title, metadata, cost, stop: stopReason?.type, runnable: row.runnable };
      };
      const IDLE = SessionStatus.SESSION_STATUS_IDLE;
      const RUNNING = SessionStatus.SESSION_STATUS_RUNNING;
      const before = { title: "source", metadata: { a: "1" } };
      const after = { title: "renamed", metadata: { a: "1", b: "2" } };
      const free = [0n, 0n, undefined];
      const spent = [10n, 5n, 30n];
      const table = [
        [1n, { ...before, status: IDLE, cost: free, stop: undefined, runnable: false }],
        [2n, { ...before, status: IDLE, cost: free, stop: undefined, runnable: true }],
        [4n, { ...before, status: RUNNING, cost: free, stop: undefined, runnable: true }],
        [5n, { ...before, status: RUNNING, cost: spent, stop: undefined, runnable: true }],
        [6n, { ...before, status: IDLE, cost: spent, stop: 1, runnable: false }],
        [7n, { ...after, status: IDLE, cost: spent, stop: 1, runnable: false }],
        [8n, { ...after, status: IDLE, cost: spent, stop: 1, runnable: true }],
        [0n, { ...after, status: RUNNING, cost: spent, stop: 1, runnable: true }],
      ] as const;
      for (const [position, expected] of table) assert.deepEqual(await at(position), expected, `${position}`);
    });

    it("goes on by itself under higher epochs, and the source knows nothing of it", async () => {
      const { id, epoch } = await twoTurns();
      const head = (await suite.get(id)).headPosition;
      const made = await fork(id, { position: 6n });
      await emit(suite.client, made.id, [userMessage("another way")]);
      const lease = await suite.acquire(made.id);
      assert.equal(lease.epoch, epoch + 1n);
      await emit(suite.harness, made.id, [running()], { epoch: lease.epoch });
      assert.equal((await suite.get(id)).headPosition, head);
      assert.equal((await suite.get(id)).leaseOwner, "spiffe://ganglion.local/harness/harness-forks");
      const positions = (await suite.eventsOf(made.id)).map(({ position }) => position);
      assert.deepEqual(
        positions,
        positions.map((_, index) => BigInt(index + 1)),
      );
    });

    it("has a title of its own in the log, behind what it copied", async () => {
      const { id } = await twoTurns();
      const made = await fork(id, { position: 7n, title: "branch" });
      same(
        (await suite.eventsOf(made.id)).slice(7).map(({ type }) => type),
        ["ganglion.session_forked", "session.updated"],
      );
      same([made.title, made.headPosition], ["branch", 9n]);
      same((await fork(id, { position: 7n, title: "renamed" })).headPosition, 8n);
    });

    it("a fork can be forked", async () => {
      const { id } = await twoTurns();
      const first = await fork(id, { position: 7n, title: "branch" });
      const second = await fork(first.id);
      same([second.title, second.forkedFromSessionId, second.forkedAtPosition], ["branch", first.id, 9n]);
      same((await suite.eventsOf(second.id)).slice(1, 9), (await suite.eventsOf(first.id)).slice(1, 9));
    });

    it("binds the vaults anew before anybody sees it, with the servers it has by then", async () => {
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
      const { id } = await suite.create({ agentId: agent?.id ?? "", vaultIds: ["vlt_b", "vlt_a"] });
      await suite.update(id, {
        agentMcpServersJson: json([{ type: "url", name: "notes", url: "https://other.example/mcp" }]),
      });
      for (const [position, url] of [
        [1n, "https://notes.example/mcp"],
        [2n, "https://other.example/mcp"],
      ] as const) {
        const made = await fork(id, { position });
        same(kit().proxy.bound.at(-1), {
          sessionId: made.id,
          workspaceId: "wrkspc_default",
          vaultIds: ["vlt_b", "vlt_a"],
          mcpServers: [{ name: "notes", url }],
          models: ["claude-test"],
          replacesMcpServers: false,
          networking: { type: 1, allowedHosts: [], allowMcpServers: false, allowPackageManagers: false },
          gitRepositories: [],
        });
        same(JSON.parse(Buffer.from(made.agentJson).toString()).mcp_servers[0].url, url);
      }
      const count = async () =>
        (await kit().sql("ganglion_owner", "SELECT count(*)::int AS n FROM session.events"))[0].n;
      const before = await count();
      kit().proxy.failure = new GanglionError({ code: "UNAVAILABLE", reason: "X", message: "no" });
      try {
        await assert.rejects(fork(id), refused("UNAVAILABLE", "PROXY_UNAVAILABLE"));
      } finally {
        kit().proxy.failure = undefined;
      }
      assert.equal(await count(), before);
    });

    it("answers a repeated request id with the same fork, also of two at once, and refuses another body", async () => {
      const { id } = await suite.create();
      const requestId = randomUUID();
      const [first, second] = await Promise.all([fork(id, { requestId }), fork(id, { requestId })]);
      assert.equal(first.id, second.id);
      assert.equal((await fork(id, { requestId })).id, first.id);
      await assert.rejects(fork(id, { requestId, title: "x" }), refused("ALREADY_EXISTS", "ID_REUSED"));
    });

    it("refuses what is not there, another workspace's, ahead of the log or malformed [A140]", async () => {
      const { id } = await suite.create();
      const notFound = refused("NOT_FOUND", "SESSION_NOT_FOUND");
      await assert.rejects(fork("sesn_absent"), notFound);
      await assert.rejects(fork(id, {}, suite.stranger), notFound);
      await assert.rejects(fork(id, { position: 2n }), refused("OUT_OF_RANGE", "POSITION_AHEAD_OF_LOG"));
      await assert.rejects(fork(id, { position: -1n }), refusedField("position"));
      await assert.rejects(fork(id, { title: "x".repeat(257) }), refusedField("title"));
      await assert.rejects(fork(""), refusedField("session_id"));
    });

    it("an ended session can be forked before its end, archived or killed", async () => {
      const archived = await suite.create({ title: "old" });
      await emit(suite.client, archived.id, [userMessage("x")]);
      await suite.client.session.archiveSession({ sessionId: archived.id });
      const made = await fork(archived.id);
      same(
        [made.status, made.forkedAtPosition, made.archiveTime],
        [SessionStatus.SESSION_STATUS_IDLE, 2n, undefined],
      );
      await emit(suite.client, made.id, [userMessage("goes on")]);
      await assert.rejects(
        fork(archived.id, { position: 3n }),
        refused("FAILED_PRECONDITION", "SESSION_ENDED"),
      );
      const { id } = await twoTurns();
      await suite.client.session.killSession({ sessionId: id });
      same((await fork(id)).status, SessionStatus.SESSION_STATUS_RUNNING);
    });

    it("reads the content that copied events name, also when its source is gone", async () => {
      const { id } = await suite.create();
      const content = Buffer.from(JSON.stringify({ type: "text", text: "long ".repeat(300_000) }));
      await put(suite.client, id, "big", content, { header: { contentType: "application/json" } });
      const value = { ...refTo("big", content), excerpt: "long" };
      const block = { type: "text", data: { $case: "payload" as const, value } };
      await emit(suite.client, id, [event({ $case: "userMessage", value: { content: [block] } })]);
      const made = await fork(id);
      await suite.client.session.deleteSession({ sessionId: id });
      assert.ok((await read(suite.client, made.id, "big")).equals(content));
    });

    it("copies a long log in pieces, whole or not at all, while the source goes on", async () => {
      const { id } = await suite.create();
      for (let batch = 0; batch < 45; batch++) {
        await emit(
          suite.client,
          id,
          Array.from({ length: 100 }, (_, index) => userMessage(`${batch}.${index}`)),
        );
      }
      const big = "x".repeat(900_000);
      for (let n = 0; n < 24; n++) await emit(suite.client, id, [userMessage(`${n} ${big}`)]);
      const appending = (async () => {
        for (let n = 0; n < 20; n++) await emit(suite.client, id, [userMessage(`late ${n}`)]);
      })();
      const made = await fork(id, { position: 4525n });
      await appending;
      const [{ same: isSame, n }] = await kit().sql(
        "ganglion_owner",
        `SELECT count(*)::int AS n, bool_and(a.event_id = b.event_id AND a.body = b.body) AS same
           FROM session.events a JOIN session.events b USING (workspace_id, position)
           WHERE a.session_id = $1 AND b.session_id = $2 AND position BETWEEN 2 AND 4525`,
        [id, made.id],
      );
      assert.deepEqual([n, isSame, made.headPosition], [4524, true, 4526n]);
    }).timeout(60_000);
  });
}
