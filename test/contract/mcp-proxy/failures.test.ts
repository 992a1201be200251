import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { newId } from "../../../services/common/ids/new-id.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import { until } from "../../kit/until.ts";
import { type BoundSession, briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

describe("mcp-proxy when parts fail", () => {
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;
  let recorder: Server;
  let reached = 0;

  before(async function () {
    this.timeout(60_000);
    upstream = await startMcpUpstream();
    recorder = createServer((_request, response) => {
      reached += 1;
      response.writeHead(302, { location: "http://169.254.169.254/latest/" }).end();
    });
    recorder.listen(0, "127.0.0.1");
    await once(recorder, "listening");
    const hosts = [new URL(upstream.url).host, recorderHost(), "127.0.0.1:1", "127.0.0.1:3"];
    kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: hosts.join(","),
      GANGLION_PROXY_FORBIDDEN_ENDPOINTS: "127.0.0.1:3,127.0.0.1:4",
    });
  });

  after(async () => {
    await kit?.stop();
    await upstream?.stop();
    recorder?.close();
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed")
      console.log(kit.service.output().split("\n").slice(-6).join("\n"));
  });

  const recorderHost = () => `127.0.0.1:${(recorder.address() as AddressInfo).port}`;
  const bound = (url = upstream.url, secret: string | undefined = upstream.token) =>
    kit.bound({ servers: [{ name: "demo", url, ...(secret === undefined ? {} : { secret }) }] });
  const metadata = (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } });
  const list = async (of: BoundSession) =>
    (await kit.mcp()).listTools({ mcpServerName: "demo" }, metadata(of));
  const call = async (of: BoundSession, name: string, input: object, key = newId("sevt")) => {
    const inputJson = Buffer.from(JSON.stringify(input));
    const request = { mcpServerName: "demo", name, inputJson, key, timeout: undefined, acknowledgedKeys: [] };
    return (await kit.mcp()).callTool(request, metadata(of));
  };

  it("kill -9 between dispatch and outcome: the key answers UNKNOWN, nothing runs twice, one recovery record [A143] [A107] [L4]", async function () {
    this.timeout(60_000);
    const session = await bound();
    const key = newId("sevt");
    const input = { duration: 59, steps: 1 };
    const first = call(session, "trigger-long-running-operation", input, key);
    first.catch(() => {});
    await upstream.journal.waitFor((entry) => JSON.stringify(entry.arguments) === JSON.stringify(input));
    await kit.restartProxy();
    const again = await call(session, "trigger-long-running-operation", input, key);
    assert.equal(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    assert.equal(again.call?.isError, true);
    const { call: asked } = await (await kit.mcp()).getCall({ key }, metadata(session));
    assert.equal(asked?.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    const made = (await upstream.journal.entries()).filter(
      (entry) => JSON.stringify(entry.arguments) === JSON.stringify(input),
    );
    assert.equal(made.length, 1);
    const records = await kit.records(session.sessionId);
    const one = records.filter(({ requestId }) => requestId === records[0]?.requestId);
    assert.deepEqual(briefly(one), ["decision allow", "dispatch", "recovery unknown"]);
  });

  it("the same for a tool that the server calls read-only or idempotent: it is made again", async function () {
    this.timeout(60_000);
    const session = await bound();
    await list(session);
    const key = newId("sevt");
    await call(session, "echo", { message: "x" }, key);
    const [row] = await kit.sql(
      "ganglion_owner",
      "SELECT is_repeatable FROM proxy.calls WHERE call_key = $1",
      [key],
    );
    assert.equal(row.is_repeatable, true);
    // As a process leaves it that dies before the outcome.
    await kit.sql(
      "ganglion_owner",
      "UPDATE proxy.calls SET state = 'dispatched', result = NULL, boot_id = 'dead' WHERE call_key = $1",
      [key],
    );
    const again = await call(session, "echo", { message: "x" }, key);
    assert.equal(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.equal(again.call?.isReplayed, false);
  });

  it("a sealed Vault: UNAVAILABLE, nothing sent, records say so, and it recovers by itself [A116]", async () => {
    const session = await bound();
    await kit.vault.http.call("PUT", "sys/seal", { token: kit.rootToken });
    try {
      const before = (await upstream.journal.entries()).length;
      const error = await failureOf(list(session));
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.reason, "VAULT_UNAVAILABLE");
      assert.equal((await upstream.journal.entries()).length, before);
      assert.deepEqual(briefly(await kit.records(session.sessionId)), [
        "decision allow",
        "outcome vault_unavailable",
      ]);
      await kit.raiseFence(session.sessionId, 0n, true);
      assert.equal((await failureOf(list(session))).reason, "SESSION_ENDED");
    } finally {
      await kit.vault.http.call("PUT", "sys/unseal", { body: { key: kit.unsealKey } });
    }
    await list(await bound());
  });

  it("revokes a session's Vault tokens at Vault when it ends, also when Vault was sealed meanwhile [L7] [A125]", async function () {
    this.timeout(40_000);
    const session = await bound();
    await list(session);
    const [token] = await kit.sql(
      "ganglion_owner",
      "SELECT * FROM proxy.vault_tokens WHERE session_id = $1",
      [session.sessionId],
    );
    const lookUp = () =>
      kit.vault.http.call("POST", "auth/token/lookup-accessor", {
        token: kit.rootToken,
        body: { accessor: token.accessor },
        accept: [400, 403, 404, 503],
      });
    const alive = await lookUp();
    assert.equal(alive.status, 200);
    const { meta } = alive.body.data as { meta: Record<string, string> };
    assert.equal(meta.session_id, session.sessionId);
    await kit.vault.http.call("PUT", "sys/seal", { token: kit.rootToken });
    await kit.raiseFence(session.sessionId, 0n, true);
    await kit.vault.http.call("PUT", "sys/unseal", { body: { key: kit.unsealKey } });
    const isRevoked = async () =>
      (
        await kit.sql("ganglion_owner", "SELECT state FROM proxy.vault_tokens WHERE accessor = $1", [
          token.accessor,
        ])
      )[0].state === "revoked";
    await until(isRevoked, "the token to be revoked");
    assert.notEqual((await lookUp()).status, 200);
  });

  it("a record that cannot be written: AUDIT_UNAVAILABLE, nothing sent, and it recovers by itself [A141] [L6]", async () => {
    const session = await bound();
    await list(session);
    const before = (await upstream.journal.entries()).length;
    await kit.sql(
      "ganglion_owner",
      "REVOKE EXECUTE ON FUNCTION proxy.write_records(jsonb) FROM ganglion_proxy",
    );
    try {
      const error = await failureOf(list(session));
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.reason, "AUDIT_UNAVAILABLE");
      assert.equal((await upstream.journal.entries()).length, before);
    } finally {
      await kit.sql(
        "ganglion_owner",
        "GRANT EXECUTE ON FUNCTION proxy.write_records(jsonb) TO ganglion_proxy",
      );
    }
    await list(session);
  });

  it("a sink that hangs counts as failed after two seconds [A141]", async function () {
    this.timeout(30_000);
    const session = await bound();
    const client = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await client.connect();
    await client.query("BEGIN; SELECT * FROM proxy.audit_head FOR UPDATE");
    try {
      const startedAt = Date.now();
      assert.equal((await failureOf(list(session))).reason, "AUDIT_UNAVAILABLE");
      assert.ok(Date.now() - startedAt < 4000);
    } finally {
      await client.end();
    }
    await list(session);
  });

  it("an upstream that nobody answers at: UPSTREAM_UNREACHABLE, and the key is free again", async () => {
    const session = await bound("http://127.0.0.1:1/mcp");
    const key = newId("sevt");
    const error = await failureOf(call(session, "echo", {}, key));
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.reason, "UPSTREAM_UNREACHABLE");
    assert.equal(
      (await failureOf((await kit.mcp()).getCall({ key }, metadata(session)))).reason,
      "CALL_NOT_FOUND",
    );
    assert.equal((await failureOf(call(session, "echo", {}, key))).reason, "UPSTREAM_UNREACHABLE");
  });

  it("an upstream that redirects to instance metadata: not followed [A017] [A019]", async () => {
    const session = await bound(`http://${recorderHost()}/mcp`);
    const error = await failureOf(list(session));
    assert.equal(error.reason, "UPSTREAM_REDIRECT");
    assert.equal(reached, 1);
    const records = await kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome redirect_refused"]);
    assert.equal(records[2]?.status, 302);
  });

  it("an upstream that refuses the stored credential: UPSTREAM_UNAUTHORIZED; without a credential CRED_MISSING", async () => {
    const wrong = await bound(upstream.url, "wrong-but-long-enough");
    assert.equal((await failureOf(list(wrong))).reason, "UPSTREAM_UNAUTHORIZED");
    assert.equal((await failureOf(call(wrong, "echo", {}))).reason, "UPSTREAM_UNAUTHORIZED");
    const outcomes = (await kit.records(wrong.sessionId)).filter(({ status }) => status > 0);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      [401, 401],
    );
    const none = await kit.bound({ servers: [{ name: "demo", url: upstream.url }] });
    assert.equal((await failureOf(list(none))).reason, "CRED_MISSING");
  });

  it("destinations that are not listed, and the mesh itself [A003] [A037]", async () => {
    // What the operator's policy does not list is denied at once; what it lists, or leaves to the address, when that is known.
    const [unlisted, refused] = [
      ["decision deny DEST_NOT_ALLOWED"],
      ["decision allow", "outcome dest_not_allowed"],
    ];
    const cases: [string, string[]][] = [
      ["http://127.0.0.1:2/mcp", unlisted],
      // Listed as plain HTTP, and forbidden all the same.
      ["http://127.0.0.1:3/mcp", refused],
      ["https://127.0.0.1:2/mcp", unlisted],
      ["https://169.254.169.254/latest", refused],
      [`https://${kit.service.listening.addr}/`, unlisted],
      [`${kit.vault.address.addr}/v1/sys/mounts`, unlisted],
    ];
    for (const [url, records] of cases) {
      const session = await bound(url);
      const error = await failureOf(list(session));
      assert.deepEqual([error.code, error.reason], ["PERMISSION_DENIED", "DEST_NOT_ALLOWED"], url);
      assert.deepEqual(briefly(await kit.records(session.sessionId)), records, url);
    }
  });

  it("rows that somebody changed past the proxy are worth nothing", async () => {
    const session = await bound();
    await list(session);
    await kit.sql(
      "ganglion_owner",
      "UPDATE proxy.bindings SET models = '{claude-evil}' WHERE session_id = $1",
      [session.sessionId],
    );
    const error = await failureOf(list(session));
    assert.equal(error.code, "DATA_LOSS");
    assert.equal(error.reason, "ROW_TAMPERED");
    const other = await bound();
    await kit.sql("ganglion_owner", "UPDATE proxy.credentials SET url = $2 WHERE vault_id = $1", [
      other.vaultId,
      `http://${recorderHost()}/mcp`,
    ]);
    assert.equal((await failureOf(list(other))).reason, "CRED_MISSING");
  });

  it("kill -9 between decision and dispatch: one recovery record says that nothing was sent [A143]", async function () {
    this.timeout(60_000);
    const session = await bound();
    const before = (await upstream.journal.entries()).length;
    process.kill(kit.vault.pid(), "SIGSTOP");
    try {
      list(session).catch(() => {});
      await kit.recordsWhen(session.sessionId, (records) => records.length > 0);
      kit.service.process.kill("SIGKILL");
      await kit.service.exit;
    } finally {
      process.kill(kit.vault.pid(), "SIGCONT");
    }
    await kit.restartProxy();
    const records = await kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "recovery not_dispatched"]);
    const [decision, recovery] = records.map(({ credentialId, policyDigest, ruleId }) => {
      return [credentialId, policyDigest, ruleId];
    });
    assert.deepEqual(recovery, decision);
    assert.ok(decision?.every((text) => text !== ""));
    assert.equal((await upstream.journal.entries()).length, before);
  });

  it("an outcome that cannot be written: the answer and the journal both say UNKNOWN [A141] [L4]", async function () {
    this.timeout(30_000);
    const session = await bound();
    const key = newId("sevt");
    const input = { duration: 1, steps: 7 };
    const first = call(session, "trigger-long-running-operation", input, key);
    await upstream.journal.waitFor((entry) => JSON.stringify(entry.arguments) === JSON.stringify(input));
    const client = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await client.connect();
    await client.query("BEGIN; SELECT * FROM proxy.audit_head FOR UPDATE");
    try {
      assert.equal((await first).call?.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
    } finally {
      await client.end();
    }
    const again = await call(session, "trigger-long-running-operation", input, key);
    assert.notEqual(again.call?.outcome, ToolOutcome.TOOL_OUTCOME_NOT_RUN);
    const made = (await upstream.journal.entries()).filter(
      (entry) => JSON.stringify(entry.arguments) === JSON.stringify(input),
    );
    assert.equal(made.length, 1);
  });

  it("a database that dies and comes back: UNAVAILABLE meanwhile, then well again, without a restart", async function () {
    this.timeout(60_000);
    const session = await bound();
    await list(session);
    await kit.postgres.server.stop();
    const error = await failureOf(list(session));
    assert.equal(error.code, "UNAVAILABLE");
    await kit.postgres.restart();
    for (;;) {
      const worked = await list(session).then(
        () => true,
        (cause) => {
          assert.equal(cause.code, "UNAVAILABLE");
          return false;
        },
      );
      if (worked) break;
    }
    assert.equal(kit.service.process.exitCode, null);
    const own = await bound();
    await kit.raiseFence(own.sessionId, 0n, true);
    assert.equal((await failureOf(list(own))).reason, "SESSION_ENDED");
  });
});
