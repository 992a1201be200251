import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import pg from "pg";
import type { Record as AuditRecord } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import type { TestModel } from "../../kit/scripted-model.ts";
import { HELLO, MODEL, ModelStage, PLAIN } from "./model-stage.ts";
import { type BoundSession, briefly, type ProxyKit } from "./proxy-kit.ts";

describe("the model door", () => {
  let stage: ModelStage;
  let kit: ProxyKit;
  let model: TestModel;

  before(async function () {
    this.timeout(60_000);
    stage = await ModelStage.start();
    ({ kit, model } = stage);
  });
  after(() => stage?.stop());

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

  it("answers without a stream, marks the upstream, and sends it nothing of the caller's [A046]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const answer = await stage.post(session.token, HELLO, {
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
        "SELECT kind, effect, reason, xmin::text AS tx FROM proxy.audit_records WHERE session_id = $1 AND operation = 'model' ORDER BY sequence",
        [session.sessionId],
      )
    ).map(({ kind, effect, reason, tx }) => ({ what: `${kind} ${effect}${reason}`, tx }));

  it("writes the dispatch with the decision while the secret is kept, with the same facts", async () => {
    const session = await kit.bound({ models: [MODEL] });
    for (const _ of [1, 2]) assert.equal((await stage.post(session.token, HELLO)).status, 200);
    const written = await transactions(session);
    const one = ["decision allow", "dispatch ", "outcome ok"];
    assert.deepEqual(
      written.map(({ what }) => what),
      [...one, ...one],
    );
    // The first had to ask Vault in between, and nobody may before the decision is durable.
    assert.notEqual(written[0]?.tx, written[1]?.tx);
    assert.equal(written[3]?.tx, written[4]?.tx);
    const places = ({ requestId, sequence, createTime, epoch, hash, prev, ...record }: AuditRecord) => record;
    // Each request comes with a certificate of its own here, and each answer has its own id.
    const facts = (await kit.records(session.sessionId))
      .map(places)
      .map(({ callerCertSha256, responseBodyHmac, ...record }) => record);
    assert.deepEqual(facts.slice(3), facts.slice(0, 3));
    assert.ok(facts[4]?.vaultRequestId);
    assert.equal(facts[4]?.requestBytes, BigInt(JSON.stringify(HELLO).length));
  });

  it("believes nothing that it kept of the request before: what changed meanwhile counts at once [L6]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const ask = async () => (await stage.post(session.token, HELLO)).headers.get("ganglion-reason");
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
    assert.equal((await stage.post(session.token, HELLO)).status, 200);
    const before = (await model.journal.entries()).filter(({ kind }) => kind === "request").length;
    const head = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await head.connect();
    await head.query("BEGIN; SELECT * FROM proxy.audit_head FOR UPDATE");
    try {
      const answer = stage.post(session.token, HELLO);
      const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted";
      for (let found = 0; found === 0; ) found = (await kit.sql("ganglion_owner", waiting)).length;
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
    assert.equal((await stage.post(session.token, HELLO, { headers })).status, 200);
    const isOfTrace = ({ trace_id: id }: Record<string, unknown>) => id === traceId;
    await kit.service.line(isOfTrace);
    const lines = kit.service.lines().filter(isOfTrace);
    assert.deepEqual(
      lines.map(({ msg, status, session_id: id }) => [msg, status, id]),
      [["model request", 200, session.sessionId]],
    );
  });

  it("passes an upstream's error on with its status and retry-after, in our own words", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const messages = [{ role: "user", content: "scenario: error status=529 retryAfter=7 times=always" }];
    const answer = await stage.post(session.token, { ...HELLO, messages });
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
      const answer = await stage.post(session.token, { ...HELLO, messages, stream });
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
    const reader = await slowStream(session);
    const raisedAt = Date.now();
    await kit.raiseFence(session.sessionId, 2n, false);
    await assert.rejects(toEnd(reader));
    assert.ok(Date.now() - raisedAt < 5000);
    const records = await kit.recordsWhen(session.sessionId, ({ length }) => length === 3);
    assert.equal(records[2]?.reason, "token_stale_epoch");
    assert.equal((await stage.post(session.token, HELLO)).status, 401);
  });

  it("cuts what runs, and lets nothing in, while the database cannot say whose session is over [L7]", async function () {
    this.timeout(40_000);
    const session = await kit.bound({ models: [MODEL] });
    const reader = await slowStream(session);
    const owner = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await owner.connect();
    try {
      await owner.query("BEGIN; LOCK TABLE proxy.fences IN ACCESS EXCLUSIVE MODE");
      await assert.rejects(toEnd(reader));
      assert.equal((await stage.post(session.token, HELLO)).status, 503);
    } finally {
      await owner.end();
    }
    const records = await kit.recordsWhen(session.sessionId, ({ length }) => length === 3);
    assert.equal(records[2]?.reason, "database_unavailable");
    assert.equal((await stage.post(session.token, HELLO)).status, 200);
  });

  it("ends the upstream's stream when the caller goes away [A106]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const abort = new AbortController();
    await slowStream(session, abort.signal);
    const before = (await model.journal.entries()).length;
    abort.abort();
    await model.journal.waitFor((entry) => entry.n >= before && entry.ending === "client_closed", 5000);
    const records = await kit.recordsWhen(session.sessionId, ({ length }) => length === 3);
    assert.equal(records[2]?.reason, "cancelled");
  });

  it("and when the caller was gone before its request was decided [A106]", async () => {
    const session = await kit.bound({ models: [MODEL] });
    const { fetch } = await kit.door();
    const abort = new AbortController();
    const traceId = "a".repeat(32);
    const headers = {
      authorization: `Bearer ${session.token}`,
      traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    };
    const messages = [{ role: "user", content: "scenario: slow ms=60000" }];
    const body = JSON.stringify({ ...HELLO, max_tokens: 100_000, stream: true, messages });
    const owner = new pg.Client(kit.postgres.connection("ganglion_owner"));
    await owner.connect();
    try {
      await owner.query("BEGIN; SELECT FROM proxy.audit_head FOR UPDATE");
      const url = `https://${kit.doorAddress()}/v1/messages`;
      const asked = fetch(url, {
        method: "POST",
        headers: { ...PLAIN, ...headers },
        body,
        signal: abort.signal,
      });
      const waits =
        "SELECT FROM pg_stat_activity WHERE usename = 'ganglion_proxy' AND wait_event_type = 'Lock' AND query LIKE '%write_%'";
      for (let found = 0; found === 0; ) found = (await kit.sql("ganglion_proxy", waits, [])).length;
      abort.abort();
      await assert.rejects(asked);
      await kit.service.line(({ trace_id: id }) => id === traceId);
    } finally {
      await owner.query("COMMIT");
      await owner.end();
    }
    const records = await kit.recordsWhen(session.sessionId, ({ length }) => length >= 3);
    assert.deepEqual(records.map(({ reason }) => reason).at(-1), "cancelled");
  });

  type Reader = ReadableStreamDefaultReader<Uint8Array>;

  /** A stream that goes on for a minute; its first bytes are there. */
  async function slowStream({ token }: BoundSession, signal?: AbortSignal): Promise<Reader> {
    const { fetch } = await kit.door();
    const messages = [{ role: "user", content: "scenario: slow ms=60000" }];
    const answer = await fetch(`https://${kit.doorAddress()}/v1/messages`, {
      method: "POST",
      headers: { ...PLAIN, authorization: `Bearer ${token}` },
      body: JSON.stringify({ ...HELLO, max_tokens: 100_000, stream: true, messages }),
      ...(signal ? { signal } : {}),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    return reader;
  }

  async function toEnd(reader: Reader): Promise<void> {
    while (!(await reader.read()).done);
  }
});
