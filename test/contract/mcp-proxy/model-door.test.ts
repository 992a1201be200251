import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import pg from "pg";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";
import { type BoundSession, briefly, ProxyKit } from "./proxy-kit.ts";

const MODEL = "claude-test";
const PLAIN = { "content-type": "application/json", "anthropic-version": "2023-06-01" };

describe("the model door", () => {
  let kit: ProxyKit;
  let model: TestModel;

  before(async function () {
    this.timeout(60_000);
    model = await startScriptedModel();
    kit = await ProxyKit.start({ GANGLION_SCRIPTED_MODEL_URL: model.url });
    await kit.storeModelKey(model.url, model.apiKey);
  });

  after(async () => {
    await kit?.stop();
    await model?.stop();
  });

  const sdk = async (session: BoundSession) =>
    new Anthropic({
      baseURL: `https://${kit.doorAddress()}`,
      apiKey: null,
      authToken: session.token,
      fetch: (await kit.door()).fetch,
      maxRetries: 0,
    });

  it("streams through the official SDK and writes one record of each kind", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const client = await sdk(session);
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 100,
      messages: [{ role: "user", content: "scenario: plain words=5\nhello" }],
    });
    const message = await stream.finalMessage();
    assert.equal(message.role, "assistant");
    const records = await kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
    const [decision, dispatch, outcome] = records;
    assert.equal(new Set(records.map(({ requestId }) => requestId)).size, 1);
    assert.equal(decision?.operation, "model");
    assert.equal(decision?.tokenId, session.tokenId);
    assert.equal(dispatch?.peerAddress, "127.0.0.1");
    assert.ok(dispatch?.vaultRequestId);
    assert.equal(dispatch?.credentialVersion, 1n);
    assert.equal(outcome?.status, 200);
    assert.ok((outcome?.responseBytes ?? 0n) > 0n);
  });

  const post = async (
    token: string | undefined,
    body: unknown,
    more: {
      path?: string;
      method?: string;
      headers?: Record<string, string>;
      harness?: string;
      service?: string;
    } = {},
  ) => {
    const { fetch } = await kit.door(more.harness, more.service);
    const init: RequestInit = {
      method: more.method ?? "POST",
      headers: {
        ...PLAIN,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...more.headers,
      },
    };
    if (init.method === "POST") init.body = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(`https://${kit.doorAddress()}${more.path ?? "/v1/messages"}`, init);
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  const hello = {
    model: MODEL,
    max_tokens: 50,
    messages: [{ role: "user", content: "scenario: plain words=3" }],
  };

  it("answers without a stream, marks the upstream, and sends it nothing of the caller's [A046]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const answer = await post(session.token, hello, {
      headers: { "x-stainless-lang": "js", "user-agent": "me" },
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("ganglion-model-upstream"), "scripted");
    const entries = await model.journal.entries();
    assert.ok(!JSON.stringify(entries).includes(session.token));
  });

  const transactions = async (session: BoundSession) =>
    (
      await kit.sql(
        "ganglion_owner",
        "SELECT kind, effect, reason, xmin::text AS tx FROM proxy.audit_records WHERE session_id = $1 ORDER BY sequence",
        [session.sessionId],
      )
    ).map(({ kind, effect, reason, tx }) => ({ what: `${kind} ${effect}${reason}`, tx }));

  it("writes the dispatch with the decision while the secret is kept, with the same facts", async () => {
    const session = await kit.bound({ models: [MODEL] });
    for (const _ of [1, 2]) assert.equal((await post(session.token, hello)).status, 200);
    const written = await transactions(session);
    const one = ["decision allow", "dispatch ", "outcome ok"];
    assert.deepEqual(
      written.map(({ what }) => what),
      [...one, ...one],
    );
    // The first had to ask Vault in between, and nobody may before the decision is durable.
    assert.notEqual(written[0]?.tx, written[1]?.tx);
    assert.equal(written[3]?.tx, written[4]?.tx);
    const facts = (await kit.records(session.sessionId)).map(
      ({ requestId, sequence, createTime, epoch, hash, prev, ...record }) => record,
    );
    assert.deepEqual(facts.slice(3), facts.slice(0, 3));
    assert.ok(facts[4]?.vaultRequestId);
    assert.equal(facts[4]?.requestBytes, BigInt(JSON.stringify(hello).length));
  });

  it("believes nothing that it kept of the request before: what changed meanwhile counts at once [L6]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const ask = async () => (await post(session.token, hello)).headers.get("ganglion-reason");
    const set = (table: string, what: string, where: string) =>
      kit.sql("ganglion_owner", `UPDATE proxy.${table} SET ${what} WHERE ${where}`);
    const key = "kind = 'model_api_key'";
    const own = `session_id = '${session.sessionId}'`;
    const swapped =
      "mac = overlay(mac placing substring(mac FROM 2 FOR 1) || substring(mac FROM 1 FOR 1) from 1)";
    const changes = [
      ["credentials", key, "archived_at = now()", "archived_at = NULL", "CRED_MISSING"],
      ["credentials", key, "version = 0", "version = 1", "CRED_MISSING"],
      ["vaults", "is_system", "archived_at = now()", "archived_at = NULL", "CRED_MISSING"],
      ["credentials", key, swapped, swapped, "ROW_TAMPERED"],
      ["bindings", own, "models = '{other}'", `models = '{${MODEL}}'`, "ROW_TAMPERED"],
      ["tokens", own, "audience = 'other'", "audience = 'harness'", "ROW_TAMPERED"],
    ] as const;
    for (const [table, where, change, undo, reason] of changes) {
      assert.deepEqual([await ask(), await ask()], [null, null]);
      await set(table, change, where);
      assert.equal(await ask(), reason, `${table}: ${change}`);
      await set(table, undo, where);
    }
    const written = (await transactions(session)).map(({ what }) => what);
    assert.equal(written.filter((what) => what === "dispatch ").length, 2 * changes.length);
  });

  it("dispatches nothing whose decision is refused in its transaction [L6] [L7]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    assert.equal((await post(session.token, hello)).status, 200);
    const before = (await model.journal.entries()).filter(({ kind }) => kind === "request").length;
    const head = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await head.connect();
    await head.query("BEGIN; SELECT * FROM proxy.audit_head FOR UPDATE");
    try {
      const answer = post(session.token, hello);
      const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted";
      await until(async () => (await kit.sql("ganglion_owner", waiting)).length > 0);
      // The request has been looked at, and its decision waits for its turn.
      await kit.raiseFence(session.sessionId, 2n, false);
      await head.query("COMMIT");
      assert.equal((await answer).status, 401);
    } finally {
      await head.end();
    }
    assert.deepEqual(
      (await transactions(session)).map(({ what }) => what),
      ["decision allow", "dispatch ", "outcome ok", "decision denyTOKEN_STALE_EPOCH"],
    );
    assert.equal((await model.journal.entries()).filter(({ kind }) => kind === "request").length, before);
  });

  it("leaves one log line for each request, in the caller's trace", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    assert.equal((await post(session.token, hello, { headers })).status, 200);
    const find = () => kit.service.lines().filter(({ trace_id: id }) => id === traceId);
    await until(async () => find().length > 0);
    const lines = find();
    assert.deepEqual(
      lines.map(({ msg, status, session_id: id }) => [msg, status, id]),
      [["model request", 200, session.sessionId]],
    );
  });

  it("passes an upstream's error on with its status and retry-after, in our own words", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const messages = [{ role: "user", content: "scenario: error status=529 retryAfter=7 times=always" }];
    const answer = await post(session.token, { ...hello, messages });
    assert.equal(answer.status, 529);
    assert.equal(answer.headers.get("retry-after"), "7");
    assert.deepEqual(JSON.parse(answer.text), {
      type: "error",
      error: { type: "overloaded_error", message: "the model's API answered 529" },
    });
    const records = await kit.records(session.sessionId);
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome upstream_error"]);
    assert.equal(records[2]?.status, 529);
  });

  it("answers an overloaded model alike with and without a stream, asks it once, and waits for nobody [B024]", async () => {
    const answers: unknown[] = [];
    for (const stream of [true, false]) {
      const session = await kit.bound({ models: [MODEL] });
      const messages = [{ role: "user", content: "scenario: error status=529 retryAfter=171 times=always" }];
      const startedAt = performance.now();
      const answer = await post(session.token, { ...hello, messages, stream });
      assert.ok(performance.now() - startedAt < 10_000);
      answers.push([answer.status, answer.headers.get("retry-after"), answer.text]);
      // One dispatch: whoever asked decides whether to ask again.
      const records = await kit.records(session.sessionId);
      assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome upstream_error"]);
    }
    assert.deepEqual(answers[0], answers[1]);
    assert.deepEqual((answers[0] as unknown[]).slice(0, 2), [529, "171"]);
  });

  it("cuts a running stream when its epoch is over, and says so in the log [L7]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const { fetch } = await kit.door();
    const messages = [{ role: "user", content: "scenario: slow ms=60000" }];
    const answer = await fetch(`https://${kit.doorAddress()}/v1/messages`, {
      method: "POST",
      headers: { ...PLAIN, authorization: `Bearer ${session.token}` },
      body: JSON.stringify({ ...hello, max_tokens: 100_000, stream: true, messages }),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const raisedAt = Date.now();
    await kit.raiseFence(session.sessionId, 2n, false);
    await assert.rejects(async () => {
      for (;;) if ((await reader.read()).done) return;
    });
    assert.ok(Date.now() - raisedAt < 5000);
    await until(async () => (await kit.records(session.sessionId)).length === 3);
    assert.equal((await kit.records(session.sessionId))[2]?.reason, "token_stale_epoch");
    assert.equal((await post(session.token, hello)).status, 401);
  });

  it("ends the upstream's stream when the caller goes away [A106]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const { fetch } = await kit.door();
    const abort = new AbortController();
    const messages = [{ role: "user", content: "scenario: slow ms=50000" }];
    const answer = await fetch(`https://${kit.doorAddress()}/v1/messages`, {
      method: "POST",
      headers: { ...PLAIN, authorization: `Bearer ${session.token}` },
      body: JSON.stringify({ ...hello, max_tokens: 100_000, stream: true, messages }),
      signal: abort.signal,
    });
    await (answer.body as ReadableStream<Uint8Array>).getReader().read();
    const before = (await model.journal.entries()).length;
    abort.abort();
    await model.journal.waitFor((entry) => entry.n >= before && entry.ending === "client_closed", 5000);
    await until(async () => (await kit.records(session.sessionId)).length === 3);
    assert.equal((await kit.records(session.sessionId))[2]?.reason, "cancelled");
  });

  describe("refuses, and writes the denial [A009] [A011] [A025] [A040] [A057] [A159]", () => {
    let session: BoundSession;

    before(async () => {
      session = await kit.bound({ models: [MODEL] });
    });

    const cases: [string, () => ReturnType<typeof post>, number, string][] = [
      ["no token [A011]", () => post(undefined, hello), 401, "TOKEN_INVALID"],
      ["a made-up token [A011]", () => post("fake", hello), 401, "TOKEN_INVALID"],
      [
        "a token and another one [A100]",
        () => post(`${session.token}, Bearer x`, hello),
        401,
        "TOKEN_INVALID",
      ],
      [
        "another harness's token",
        () => post(session.token, hello, { harness: "harness-2" }),
        403,
        "CALLER_MISMATCH",
      ],
      [
        "a model that the agent does not name [A159]",
        () => post(session.token, { ...hello, model: "other" }),
        403,
        "MODEL_NOT_ALLOWED",
      ],
      [
        "MCP servers in the body [A057]",
        () => post(session.token, { ...hello, mcp_servers: [] }),
        403,
        "MODEL_FEATURE_NOT_ALLOWED",
      ],
      [
        "other routes [A009]",
        () => post(session.token, hello, { path: "/v1/messages/batches" }),
        403,
        "METHOD_NOT_ALLOWED",
      ],
      ["files [A159]", () => post(session.token, hello, { path: "/v1/files" }), 403, "METHOD_NOT_ALLOWED"],
      [
        "queries [A159]",
        () => post(session.token, hello, { path: "/v1/messages?x=1" }),
        403,
        "METHOD_NOT_ALLOWED",
      ],
      ["other methods", () => post(session.token, undefined, { method: "GET" }), 403, "METHOD_NOT_ALLOWED"],
      [
        "an API key of the caller's own [A025]",
        () => post(session.token, hello, { headers: { "x-api-key": "k" } }),
        400,
        "HEADER_FORBIDDEN",
      ],
      [
        "a cookie [A025]",
        () => post(session.token, hello, { headers: { cookie: "a=b" } }),
        400,
        "HEADER_FORBIDDEN",
      ],
      [
        "a beta that opens a way out [A159]",
        () => post(session.token, hello, { headers: { "anthropic-beta": "files-api-2025-04-14" } }),
        403,
        "MODEL_FEATURE_NOT_ALLOWED",
      ],
      ["what is not JSON", () => post(session.token, "{"), 400, "INVALID_FIELD"],
      [
        "a form",
        () => post(session.token, "a=b", { headers: { "content-type": "text/plain" } }),
        400,
        "INVALID_FIELD",
      ],
    ];
    for (const [what, send, status, reason] of cases) {
      it(what, async () => {
        const entries = (await model.journal.entries()).length;
        const [{ sequence }] = await kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head");
        const answer = await send();
        assert.equal(answer.status, status);
        assert.equal(answer.headers.get("ganglion-reason"), reason);
        assert.equal(JSON.parse(answer.text).type, "error");
        const rows = await kit.sql(
          "ganglion_owner",
          "SELECT * FROM proxy.audit_records WHERE sequence > $1",
          [sequence],
        );
        assert.deepEqual(
          rows.map((row) => `${row.kind} ${row.effect} ${row.reason}`),
          [`decision deny ${reason}`],
        );
        assert.equal((await model.journal.entries()).length, entries);
      });
    }

    it("a name that is not this door's [A040]", async () => {
      const { request } = await import("node:https");
      const { ca, cert, key } = (await kit.ca.bundle("harness", "harness-1")).material();
      const [host, port] = kit.doorAddress().split(":");
      const status = await new Promise((resolve, reject) => {
        const headers = {
          host: "evil.test",
          "content-type": "application/json",
          authorization: `Bearer ${session.token}`,
        };
        const options = {
          host,
          port,
          servername: "localhost",
          path: "/v1/messages",
          method: "POST",
          ca,
          cert,
          key,
          headers,
        };
        request(options, (answer) => resolve(answer.statusCode))
          .on("error", reject)
          .end(JSON.stringify(hello));
      });
      assert.equal(status, 400);
    });

    it("a certificate that is no harness's", async () => {
      const answer = await post(session.token, hello, { service: "sandbox", harness: "sandbox-1" });
      assert.equal(answer.status, 403);
      assert.equal(answer.headers.get("ganglion-reason"), "ROLE_NOT_ALLOWED");
    });

    it("a body larger than the limit", async () => {
      const big = JSON.stringify({ ...hello, system: "x".repeat(33 << 20) });
      const answer = await post(session.token, big).catch(() => ({ status: 413 }));
      assert.equal(answer.status, 413);
    });
  });
});

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 30));
}
