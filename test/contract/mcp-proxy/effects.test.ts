import assert from "node:assert/strict";
import pg from "pg";
import { newId } from "../../../services/common/ids/new-id.ts";
import { Call } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { createCallStore } from "../../../services/mcp-proxy/store/call-store.ts";
import { endPool } from "../../kit/end-pool.ts";
import { answer, HostileMcp } from "./hostile-mcp.ts";
import { type BoundSession, failureOf, ProxyKit } from "./proxy-kit.ts";

describe("effects of calls to MCP servers [L4]", () => {
  let kit: ProxyKit;
  let upstream: HostileMcp;

  before(async function () {
    this.timeout(60_000);
    upstream = await HostileMcp.start();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: upstream.host });
  });
  beforeEach(() => {
    upstream.misbehave = () => false;
  });
  after(async () => {
    await kit?.stop();
    await upstream?.stop();
  });

  const bound = (path = "") => kit.bound({ servers: [{ name: "demo", url: `${upstream.url}${path}` }] });
  const metadata = (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } });
  const call = async (of: BoundSession, key: string, acknowledgedKeys: string[] = []) => {
    const inputJson = Buffer.from(JSON.stringify({ key }));
    const request = {
      mcpServerName: "demo",
      name: "one",
      inputJson,
      key,
      timeout: undefined,
      acknowledgedKeys,
    };
    return (await kit.mcp()).callTool(request, metadata(of));
  };
  const calls = (key: string) =>
    upstream
      .of("tools/call")
      .filter(({ rpc }) => (rpc?.params?.arguments as { key?: string } | undefined)?.key === key).length;

  /** Kills the proxy with SIGKILL while the server works on a call. */
  async function killedInCall(annotations: object): Promise<{ session: BoundSession; key: string }> {
    // A tool that is annotated otherwise is another tool: each has a server of its own.
    const session = await bound(`/${newId("req")}`);
    const begun = Promise.withResolvers<void>();
    const listAnnotated: typeof upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method !== "tools/list") return false;
      answer(response, rpc, { tools: [{ name: "one", inputSchema: { type: "object" }, annotations }] });
      return true;
    };
    upstream.misbehave = (rpc, request, response) => {
      if (rpc.method === "tools/call") begun.resolve();
      return rpc.method === "tools/call" || listAnnotated(rpc, request, response);
    };
    await (await kit.mcp()).listTools({ mcpServerName: "demo" }, metadata(session));
    const key = newId("sevt");
    call(session, key).catch(() => {});
    await begun.promise;
    await kit.restartProxy();
    upstream.misbehave = listAnnotated;
    return { session, key };
  }

  for (const annotations of [{ readOnlyHint: true }, { idempotentHint: true }]) {
    it(`a call that was lost with the proxy is made again under its key: ${Object.keys(annotations)}`, async function () {
      this.timeout(60_000);
      const { session, key } = await killedInCall(annotations);
      const lost = await (await kit.mcp()).getCall({ key }, metadata(session));
      assert.deepEqual(
        [lost.call?.outcome, lost.isRunning, lost.mayRepeat],
        [ToolOutcome.TOOL_OUTCOME_UNKNOWN, false, true],
      );
      const again = await call(session, key);
      assert.equal(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      assert.equal(calls(key), 2);
      const known = await (await kit.mcp()).getCall({ key }, metadata(session));
      assert.deepEqual([known.call?.outcome, known.mayRepeat], [ToolOutcome.TOOL_OUTCOME_COMPLETED, false]);
      await call(session, key);
      assert.equal(calls(key), 2);
    });
  }

  for (const annotations of [{}, { destructiveHint: false }, { readOnlyHint: false }]) {
    it(`and stays unknown without such an annotation: ${JSON.stringify(annotations)}`, async function () {
      this.timeout(60_000);
      const { session, key } = await killedInCall(annotations);
      const lost = await (await kit.mcp()).getCall({ key }, metadata(session));
      assert.deepEqual([lost.call?.outcome, lost.mayRepeat], [ToolOutcome.TOOL_OUTCOME_UNKNOWN, false]);
      const again = await call(session, key);
      assert.equal(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
      assert.equal(calls(key), 1);
    });
  }

  it("a result of 6 MB is kept whole and read in pieces, also by whoever asks later [B031]", async () => {
    const session = await bound();
    const text = "ü".repeat(3 << 20);
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method === "tools/call") answer(response, rpc, { content: [{ type: "text", text }] });
      return rpc.method === "tools/call";
    };
    const key = newId("sevt");
    const { call: made } = await call(session, key);
    assert.equal(made?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.match(String(made?.content[0]?.data?.value), /larger than one message/);
    const size = Number(made?.fullSizeBytes);
    assert.ok(size > 6 << 20, String(size));
    await kit.restartProxy();
    const pieces: Buffer[] = [];
    for await (const { data } of (await kit.mcp()).readCall({ key }, metadata(session))) {
      assert.ok(data.length <= 1 << 20);
      pieces.push(data);
    }
    const whole = Call.decode(Buffer.concat(pieces));
    assert.equal(Buffer.concat(pieces).length, size);
    assert.deepEqual(JSON.parse(String(whole.content[0]?.data?.value)), { type: "text", text });
    assert.equal(whole.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    const other = await bound();
    const reads = (async () => {
      for await (const _ of (await kit.mcp()).readCall({ key }, metadata(other)));
    })();
    assert.equal((await failureOf(reads)).reason, "CALL_NOT_FOUND");
  });

  it("forgets what the log holds, and never makes a call again whose result it forgot", async () => {
    const session = await bound();
    const stored = async () => {
      const rows = await kit.sql(
        "ganglion_owner",
        "SELECT call_key, coalesce(length(result), 0)::int AS bytes FROM proxy.calls WHERE session_id = $1",
        [session.sessionId],
      );
      return rows.filter(({ bytes }: { bytes: number }) => bytes > 0).length;
    };
    let before: string[] = [];
    for (let turn = 0; turn < 20; turn++) {
      const key = newId("sevt");
      await call(session, key, before);
      before = [key];
    }
    // The newest, and at most the one that is being forgotten.
    assert.ok((await stored()) <= 2, `${await stored()} results are kept`);
    const rows = await kit.sql(
      "ganglion_owner",
      "SELECT call_key FROM proxy.calls WHERE session_id = $1 AND result IS NULL LIMIT 1",
      [session.sessionId],
    );
    const key = String(rows[0].call_key);
    const again = await call(session, key);
    assert.equal(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    assert.equal(calls(key), 1);
  });

  it("forgets another session's calls for nobody", async () => {
    const [mine, theirs] = [await bound(), await bound()];
    const key = newId("sevt");
    await call(theirs, key);
    await call(mine, newId("sevt"), [key]);
    const { call: known } = await (await kit.mcp()).getCall({ key }, metadata(theirs));
    assert.equal(known?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
  });

  it("forgets the calls and tokens of sessions that ended a while ago, and of no others", async () => {
    const [ended, fresh, open] = [await bound(), await bound(), await bound()];
    for (const session of [ended, fresh, open]) await call(session, newId("sevt"));
    await kit.raiseFence(ended.sessionId, 0n, true);
    await kit.raiseFence(fresh.sessionId, 0n, true);
    await kit.sql(
      "ganglion_owner",
      "UPDATE proxy.fences SET raised_at = now() - interval '2 h' WHERE session_id = $1",
      [ended.sessionId],
    );
    const pool = new pg.Pool(kit.postgres.connection("ganglion_proxy"));
    try {
      await createCallStore(pool, { instance: "mcp-proxy-1", bootId: "boot" }, () => false).forgetEnded();
    } finally {
      await endPool(pool);
    }
    for (const [session, count] of [
      [ended, 0],
      [fresh, 1],
      [open, 1],
    ] as const) {
      for (const table of ["calls", "tokens"]) {
        const text = `SELECT FROM proxy.${table} WHERE session_id = $1`;
        const rows = await kit.sql("ganglion_owner", text, [session.sessionId]);
        assert.equal(rows.length, count, table);
      }
    }
  });
});
