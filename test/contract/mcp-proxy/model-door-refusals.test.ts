import assert from "node:assert/strict";
import { request } from "node:https";
import { HELLO, MODEL, ModelStage } from "./model-stage.ts";
import type { BoundSession } from "./proxy-kit.ts";

describe("the model door refuses, and writes the denial [A009] [A011] [A025] [A040] [A057] [A159]", () => {
  let stage: ModelStage;
  let session: BoundSession;

  before(async function () {
    this.timeout(60_000);
    stage = await ModelStage.start();
    session = await stage.kit.bound({ models: [MODEL] });
  });
  after(() => stage?.stop());

  const cases: [string, () => ReturnType<ModelStage["post"]>, number, string][] = [
    ["no token [A011]", () => stage.post(undefined, HELLO), 401, "TOKEN_INVALID"],
    ["a made-up token [A011]", () => stage.post("fake", HELLO), 401, "TOKEN_INVALID"],
    [
      "a token and another one [A100]",
      () => stage.post(`${session.token}, Bearer x`, HELLO),
      401,
      "TOKEN_INVALID",
    ],
    [
      "another harness's token",
      () => stage.post(session.token, HELLO, { harness: "harness-2" }),
      403,
      "CALLER_MISMATCH",
    ],
    [
      "a model that the agent does not name [A159]",
      () => stage.post(session.token, { ...HELLO, model: "other" }),
      403,
      "MODEL_NOT_ALLOWED",
    ],
    [
      "MCP servers in the body [A057]",
      () => stage.post(session.token, { ...HELLO, mcp_servers: [] }),
      403,
      "MODEL_FEATURE_NOT_ALLOWED",
    ],
    [
      "other routes [A009]",
      () => stage.post(session.token, HELLO, { path: "/v1/messages/batches" }),
      403,
      "METHOD_NOT_ALLOWED",
    ],
    [
      "files [A159]",
      () => stage.post(session.token, HELLO, { path: "/v1/files" }),
      403,
      "METHOD_NOT_ALLOWED",
    ],
    [
      "queries [A159]",
      () => stage.post(session.token, HELLO, { path: "/v1/messages?x=1" }),
      403,
      "METHOD_NOT_ALLOWED",
    ],
    [
      "other methods",
      () => stage.post(session.token, undefined, { method: "GET" }),
      403,
      "METHOD_NOT_ALLOWED",
    ],
    [
      "an API key of the caller's own [A025]",
      () => stage.post(session.token, HELLO, { headers: { "x-api-key": "k" } }),
      400,
      "HEADER_FORBIDDEN",
    ],
    [
      "a cookie [A025]",
      () => stage.post(session.token, HELLO, { headers: { cookie: "a=b" } }),
      400,
      "HEADER_FORBIDDEN",
    ],
    [
      "a beta that opens a way out [A159]",
      () => stage.post(session.token, HELLO, { headers: { "anthropic-beta": "files-api-2025-04-14" } }),
      403,
      "MODEL_FEATURE_NOT_ALLOWED",
    ],
    ["what is not JSON", () => stage.post(session.token, "{"), 400, "INVALID_FIELD"],
    [
      "a form",
      () => stage.post(session.token, "a=b", { headers: { "content-type": "text/plain" } }),
      400,
      "INVALID_FIELD",
    ],
  ];
  for (const [what, send, status, reason] of cases) {
    it(what, async () => {
      const entries = (await stage.model.journal.entries()).length;
      const [{ sequence }] = await stage.kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head");
      const answer = await send();
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get("ganglion-reason"), reason);
      assert.equal(JSON.parse(answer.text).type, "error");
      const rows = await stage.kit.sql(
        "ganglion_owner",
        "SELECT * FROM proxy.audit_records WHERE sequence > $1",
        [sequence],
      );
      assert.deepEqual(
        rows.map((row) => `${row.kind} ${row.effect} ${row.reason}`),
        [`decision deny ${reason}`],
      );
      assert.equal((await stage.model.journal.entries()).length, entries);
    });
  }

  it("a name that is not this door's [A040]", async () => {
    const { ca, cert, key } = (await stage.kit.ca.bundle("harness", "harness-1")).material();
    const [host, port] = stage.kit.doorAddress().split(":");
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
        .end(JSON.stringify(HELLO));
    });
    assert.equal(status, 400);
  });

  it("a certificate that is no harness's", async () => {
    const answer = await stage.post(session.token, HELLO, { service: "sandbox", harness: "sandbox-1" });
    assert.equal(answer.status, 403);
    assert.equal(answer.headers.get("ganglion-reason"), "ROLE_NOT_ALLOWED");
  });

  it("a body larger than the limit", async () => {
    const big = JSON.stringify({ ...HELLO, system: "x".repeat(33 << 20) });
    const answer = await stage.post(session.token, big).catch(() => ({ status: 413 }));
    assert.equal(answer.status, 413);
  });
});
