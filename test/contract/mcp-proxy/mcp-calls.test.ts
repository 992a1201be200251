import assert from "node:assert/strict";
import { newId } from "../../../services/common/ids/new-id.ts";
import type { CallToolResponse } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import { type BoundSession, briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

describe("calls to an MCP server", () => {
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;
  let session: BoundSession;

  before(async function () {
    this.timeout(60_000);
    upstream = await startMcpUpstream();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host });
    session = await bound();
  });

  after(async () => {
    await kit?.stop();
    await upstream?.stop();
  });

  const bound = () => kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: upstream.token }] });
  const metadata = (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } });
  const call = async (
    of: BoundSession,
    name: string,
    input: object,
    more: { key?: string; timeoutMs?: number; signal?: AbortSignal } = {},
  ) => {
    const timeout =
      more.timeoutMs === undefined ? undefined : { seconds: 0n, nanos: more.timeoutMs * 1_000_000 };
    const request = {
      mcpServerName: "demo",
      name,
      inputJson: Buffer.from(JSON.stringify(input)),
      key: more.key ?? newId("sevt"),
      timeout,
      acknowledgedKeys: [],
    };
    const options = { ...metadata(of), ...(more.signal ? { signal: more.signal } : {}) };
    return (await kit.mcp()).callTool(request, options);
  };
  const textOf = ({ call: made }: CallToolResponse) =>
    (made?.content ?? []).map(({ data }) => (data?.$case === "json" ? data.value.toString() : "")).join();

  it("lists the tools and calls one; the server saw the stored token, and each has its three records", async () => {
    const { tools } = await (await kit.mcp()).listTools({ mcpServerName: "demo" }, metadata(session));
    assert.ok(tools.some(({ name }) => name === "echo"));
    const answer = await call(session, "echo", { message: "hello" });
    assert.match(textOf(answer), /hello/);
    assert.equal(answer.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.equal(answer.call?.isError, false);
    const records = await kit.records(session.sessionId);
    const one = ["decision allow", "dispatch", "outcome ok"];
    assert.deepEqual(briefly(records), [...one, ...one]);
    assert.equal(records[4]?.callKey, answer.call?.key);
    assert.equal(records[4]?.target, "echo");
    assert.equal(records[4]?.requestId, answer.call?.proxyRequestId);
    assert.deepEqual(
      records.map(({ tlsVersion }) => tlsVersion),
      ["", "", "none", "", "", "none"],
    );
  });

  it("refuses a caller that brings a credential of its own, and forwards nothing [A025, B110]", async () => {
    const own = await bound();
    const seen = (await upstream.journal.entries()).length;
    const mcp = await kit.mcp();
    for (const header of ["authorization", "x-api-key", "cookie", "x-service-token"]) {
      const more = { metadata: { ...metadata(own).metadata, [header]: "Bearer of my own" } };
      const listed = await failureOf(mcp.listTools({ mcpServerName: "demo" }, more));
      assert.deepEqual([listed.code, listed.reason], ["INVALID_ARGUMENT", "HEADER_FORBIDDEN"], header);
      const request = {
        ...{ mcpServerName: "demo", name: "echo", inputJson: Buffer.from("{}"), key: newId("sevt") },
        ...{ timeout: undefined, acknowledgedKeys: [] },
      };
      assert.equal((await failureOf(mcp.callTool(request, more))).reason, "HEADER_FORBIDDEN", header);
    }
    assert.equal((await upstream.journal.entries()).length, seen);
    assert.deepEqual(
      [...new Set(briefly(await kit.records(own.sessionId)))],
      ["decision deny HEADER_FORBIDDEN"],
    );
  });

  it("tells nothing about the credential but that there is one [A068]", async () => {
    const own = await bound();
    const mcp = await kit.mcp();
    const told = [
      await mcp.listTools({ mcpServerName: "demo" }, metadata(own)),
      await call(own, "echo", { message: "hello" }),
      await failureOf(mcp.listTools({ mcpServerName: "other" }, metadata(own))),
    ];
    const text = JSON.stringify(told, (_, value) => {
      if (typeof value === "bigint") return String(value);
      return value instanceof Uint8Array ? Buffer.from(value).toString() : value;
    });
    const [dispatch] = (await kit.records(own.sessionId)).filter(({ kind }) => kind === 2);
    assert.ok(dispatch?.credentialId && dispatch.vaultRequestId);
    const secrets = [dispatch.credentialId, dispatch.vaultRequestId, own.vaultId, upstream.token];
    for (const secret of [...secrets, "accessor", "lease_id", "ganglion/data"]) {
      assert.ok(!text.includes(secret), secret);
    }
  });

  it("takes a token at once whatever the clocks say: nothing in it depends on a time [B115]", async () => {
    const own = await bound();
    await kit.sql(
      "ganglion_owner",
      "UPDATE proxy.tokens SET created_at = now() + interval '1 hour' WHERE session_id = $1",
      [own.sessionId],
    );
    assert.match(textOf(await call(own, "echo", { message: "from the future" })), /from the future/);
  });

  it("answers the same key from the journal and calls once [A107]", async () => {
    const key = newId("sevt");
    const first = await call(session, "get-sum", { a: 2, b: 3 }, { key });
    const second = await call(session, "get-sum", { a: 2, b: 3 }, { key });
    assert.equal(second.call?.isReplayed, true);
    assert.deepEqual({ ...second.call, isReplayed: false }, first.call);
    const made = (await upstream.journal.entries()).filter((entry) => entry.tool === "get-sum");
    assert.equal(made.length, 1);
    const error = await failureOf(call(session, "get-sum", { a: 2, b: 4 }, { key }));
    assert.equal(error.reason, "ID_REUSED");
    const { call: known, isRunning } = await (await kit.mcp()).getCall({ key }, metadata(session));
    assert.equal(isRunning, false);
    assert.deepEqual(known?.content, first.call?.content);
  });

  it("says that a key was never dispatched", async () => {
    const error = await failureOf((await kit.mcp()).getCall({ key: newId("sevt") }, metadata(session)));
    assert.equal(error.reason, "CALL_NOT_FOUND");
  });

  it("gives a tool's own failure as a result", async () => {
    const answer = await call(session, "no-such-tool", {});
    assert.equal(answer.call?.isError, true);
  });

  it("goes on when its caller drops it, and the same key attaches to the same run", async () => {
    const key = newId("sevt");
    const dropped = new AbortController();
    const input = { duration: 2, steps: 4 };
    const first = call(session, "trigger-long-running-operation", input, { key, signal: dropped.signal });
    await upstream.journal.waitFor(
      (entry) => entry.kind === "call" && entry.tool === "trigger-long-running-operation",
    );
    dropped.abort();
    assert.equal((await failureOf(first)).code, "CANCELLED");
    const running = await (await kit.mcp()).getCall({ key }, metadata(session));
    assert.equal(running.isRunning, true);
    const second = await call(session, "trigger-long-running-operation", input, { key });
    assert.equal(second.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.equal(second.call?.isReplayed, true);
    const calls = (await upstream.journal.entries()).filter(
      (entry) => entry.kind === "call" && entry.tool === "trigger-long-running-operation",
    );
    assert.equal(calls.length, 1);
  });

  it("gives up a call that is cancelled and tells the server [B093]", async () => {
    const key = newId("sevt");
    const first = call(session, "trigger-long-running-operation", { duration: 60, steps: 60 }, { key });
    await upstream.journal.waitFor(
      (entry) => JSON.stringify(entry.arguments) === '{"duration":60,"steps":60}',
    );
    await (await kit.mcp()).cancelCall({ key }, metadata(session));
    const answer = await first;
    assert.equal(answer.call?.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
    assert.equal(answer.call?.isError, true);
    await upstream.journal.waitFor((entry) => entry.method === "notifications/cancelled");
  });

  it("resets its timer whenever the server reports progress [B092]", async () => {
    const input = { duration: 2, steps: 8 };
    const answer = await call(session, "trigger-long-running-operation", input, { timeoutMs: 900 });
    assert.equal(answer.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
  });

  const watch = async (of: BoundSession, key: string) => (await kit.mcp()).watchCall({ key }, metadata(of));
  it("tells whoever watches a call what its server reports, until the call ends [B092]", async () => {
    const key = newId("sevt");
    const own = await bound();
    const calling = call(own, "trigger-long-running-operation", { duration: 2.5, steps: 25 }, { key });
    await upstream.journal.waitFor(
      (entry) => JSON.stringify(entry.arguments) === '{"duration":2.5,"steps":25}',
    );
    // Two readers, of which one comes late.
    const seen: number[][] = [[], []];
    const read = async (list: number[]) => {
      for await (const { progress, total, message } of await watch(own, key)) {
        assert.deepEqual([total, message], [25, ""]);
        list.push(progress);
        if (list === seen[0] && list.length === 2) late = read(seen[1] as number[]);
      }
    };
    let late: Promise<void> | undefined;
    await read(seen[0] as number[]);
    await late;
    assert.equal((await calling).call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    for (const list of seen) {
      assert.deepEqual(
        list,
        [...list].sort((a, b) => a - b),
      );
      assert.ok(
        list.length > 0 && list.length <= 12,
        `${list} of 25 reports in 2.5 s, at most four a second`,
      );
    }
    // What is over is silent, and what never was is not there; neither is an error of the call.
    for await (const late of await watch(own, key)) assert.fail(`${late.progress} after the end`);
    const unknown = await failureOf((await watch(own, newId("sevt"))).next());
    assert.deepEqual([unknown.code, unknown.reason], ["NOT_FOUND", "CALL_NOT_FOUND"]);
    assert.equal((await failureOf((await watch(own, "a b")).next())).reason, "INVALID_FIELD");
    const others = await failureOf((await watch(await bound(), key)).next());
    assert.equal(others.reason, "CALL_NOT_FOUND", "a key of another session");
    const records = (await kit.records(own.sessionId)).filter((one) => one.operation === "mcp_watch_call");
    assert.deepEqual(briefly(records.slice(0, 2)).sort(), ["decision allow", "outcome ok"].sort());
    assert.equal(briefly(records).at(-1), "outcome call_not_found");
  });

  it("stops telling with the epoch, while the call goes on, and with the session [B092] [L7]", async () => {
    const key = newId("sevt");
    const own = await bound();
    const calling = call(own, "trigger-long-running-operation", { duration: 40, steps: 400 }, { key });
    await upstream.journal.waitFor(
      (entry) => JSON.stringify(entry.arguments) === '{"duration":40,"steps":400}',
    );
    const reader = await watch(own, key);
    assert.equal((await reader.next()).done, false);
    await kit.raiseFence(own.sessionId, 2n, false);
    const rest = async (of: typeof reader) => {
      for await (const _ of of);
    };
    assert.equal((await failureOf(rest(reader))).reason, "TOKEN_STALE_EPOCH");
    const { token } = await kit.lease(own.sessionId, 2n);
    const next = await watch({ ...own, token }, key);
    assert.equal((await next.next()).done, false, "the call goes on");
    await kit.raiseFence(own.sessionId, 2n, true);
    assert.equal((await failureOf(rest(next))).reason, "SESSION_ENDED");
    assert.equal((await calling).call?.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
  });

  it("cancels a call that stays silent longer than its timeout", async () => {
    const input = { duration: 30, steps: 1 };
    const answer = await call(session, "trigger-long-running-operation", input, { timeoutMs: 400 });
    assert.equal(answer.call?.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
    const records = await kit.records(session.sessionId);
    assert.equal(records.at(-1)?.reason, "timeout");
  });

  it("refuses from the first call after the session's end, though it worked just before [A131] [L7]", async () => {
    const own = await bound();
    await call(own, "echo", { message: "before" });
    await kit.raiseFence(own.sessionId, 0n, true);
    const error = await failureOf(call(own, "echo", { message: "after" }));
    assert.equal(error.code, "UNAUTHENTICATED");
    assert.equal(error.reason, "SESSION_ENDED");
    const last = (await kit.records(own.sessionId)).at(-1);
    assert.equal(`${last?.effect} ${last?.reason}`, "deny SESSION_ENDED");
  });

  it("refuses the token of an old epoch and takes that of the new one [L7]", async () => {
    const own = await bound();
    await kit.raiseFence(own.sessionId, 2n, false);
    const error = await failureOf(call(own, "echo", { message: "x" }));
    assert.equal(error.reason, "TOKEN_STALE_EPOCH");
    const { token } = await kit.lease(own.sessionId, 2n);
    const answer = await call({ ...own, token }, "echo", { message: "new" });
    assert.match(textOf(answer), /new/);
  });

  it("refuses a token that another harness was given [A132]", async () => {
    const mcp = await kit.mcp("harness-2");
    const error = await failureOf(mcp.listTools({ mcpServerName: "demo" }, metadata(session)));
    assert.equal(error.code, "PERMISSION_DENIED");
    assert.equal(error.reason, "CALLER_MISMATCH");
  });

  for (const [what, token] of [
    ["no token", undefined],
    ["a made-up token", "fake"],
    ["a JWT", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzZXNuXzEifQ."],
  ] as const) {
    it(`refuses ${what}, with a record of the denial [A011] [A127]`, async () => {
      const before = await lastSequence();
      const options = token === undefined ? {} : { metadata: { "ganglion-session-token": token } };
      const error = await failureOf((await kit.mcp()).listTools({ mcpServerName: "demo" }, options));
      assert.equal(error.code, "UNAUTHENTICATED");
      assert.equal(error.reason, "TOKEN_INVALID");
      const rows = await kit.sql("ganglion_owner", "SELECT * FROM proxy.audit_records WHERE sequence > $1", [
        before,
      ]);
      assert.deepEqual(
        rows.map((row) => `${row.kind} ${row.effect} ${row.reason} ${row.caller}`),
        ["decision deny TOKEN_INVALID spiffe://ganglion.local/harness/harness-1"],
      );
    });
  }

  it("refuses a server that the agent does not name", async () => {
    const error = await failureOf((await kit.mcp()).listTools({ mcpServerName: "other" }, metadata(session)));
    assert.equal(error.reason, "MCP_SERVER_NOT_FOUND");
  });

  it("names every malformed field", async () => {
    const mcp = await kit.mcp();
    const bad = {
      mcpServerName: "",
      name: "x".repeat(200),
      inputJson: Buffer.from("[1]"),
      key: "a b",
      timeout: undefined,
      acknowledgedKeys: [],
    };
    const error = await failureOf(mcp.callTool(bad, metadata(session)));
    assert.equal(error.reason, "INVALID_FIELD");
    assert.deepEqual(
      error.violations.map(({ field }) => field),
      ["mcp_server_name", "name", "key", "input_json"],
    );
  });

  it("takes odd names as data and refuses nesting beyond reason [A111] [A112]", async () => {
    const odd = '{"message":"x","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const answer = await call(session, "echo", JSON.parse(odd));
    assert.equal(answer.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    for (const name of ["__proto__", "toString", "hasOwnProperty", "constructor"]) {
      const error = await failureOf((await kit.mcp()).listTools({ mcpServerName: name }, metadata(session)));
      assert.equal(error.reason, "MCP_SERVER_NOT_FOUND");
    }
    const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const request = {
      mcpServerName: "demo",
      name: "echo",
      inputJson: Buffer.from(deep),
      key: newId("sevt"),
      timeout: undefined,
      acknowledgedKeys: [],
    };
    const error = await failureOf((await kit.mcp()).callTool(request, metadata(session)));
    assert.equal(error.violations[0]?.field, "input_json");
  });

  const lastSequence = async () =>
    (await kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head"))[0].sequence;
});
