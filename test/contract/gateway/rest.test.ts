import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { type GatewayUnderTest, playApiKeys, startGateway } from "./gateway-kit.ts";
import { event, idle, openStream, PlayedLog, text, userMessage } from "./played-log.ts";

const KEY = "gk-rest-0123456789";

describe("the REST API", () => {
  let mesh: GatewayUnderTest;
  const played = new PlayedLog();

  before(async () => {
    mesh = await startGateway([played.implementation(), playApiKeys(KEY)]);
  });
  after(() => mesh?.stop());
  beforeEach(() => played.clear());

  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${mesh.rest}${path}`, { ...init, headers: { authorization: `Bearer ${KEY}`, ...init.headers } });
  const errorOf = async (response: Response) =>
    (await response.json()) as { type: string; error: { type: string; message: string }; request_id: string };
  const post = (path: string, body: unknown) => call(path, { method: "POST", body: JSON.stringify(body) });

  it("takes the key as bearer and as x-api-key, and nothing without one", async () => {
    assert.equal((await call("/v1/sessions/sesn_1")).status, 200);
    const other = await fetch(`${mesh.rest}/v1/sessions/sesn_1`, { headers: { "x-api-key": KEY } });
    assert.equal(other.status, 200);
    const none = await fetch(`${mesh.rest}/v1/sessions/sesn_1`);
    assert.equal(none.status, 401);
    const { error, request_id: id } = await errorOf(none);
    assert.equal(error.type, "authentication_error");
    assert.equal(id, none.headers.get("request-id"));
  });

  it("answers to names of this machine only [A040]", async () => {
    for (const headers of [{ host: "evil.test" }, { host: "localhost", origin: "http://evil.test" }]) {
      const sent = request(`${mesh.rest}/v1/sessions/sesn_1`, {
        headers: { authorization: `Bearer ${KEY}`, ...headers },
      });
      sent.end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.resume();
      assert.equal(response.statusCode, 421);
    }
  });

  it("knows which routes there are, which there are not, and which are not yet", async () => {
    const unknown = await call("/v1/nonsense");
    assert.equal(unknown.status, 404);
    assert.equal((await errorOf(unknown)).type, "error");
    for (const path of [
      "/v1/memory_stores",
      "/v1/files",
      "/v1/sessions/sesn_1/threads",
      "/v1/environments/env_1/work/poll",
    ]) {
      const missing = await call(path);
      assert.equal(missing.status, 400, path);
      assert.match((await errorOf(missing)).error.message, /not supported/);
    }
    assert.equal((await call("/v1/sessions/sesn_2")).status, 404);
  });

  it("refuses a body that is too large, is not JSON, or holds what nobody knows", async () => {
    const large = await post("/v1/sessions/sesn_1/events", { events: "x".repeat(33_000_000) });
    assert.equal(large.status, 413);
    assert.equal((await errorOf(large)).error.type, "request_too_large");
    const deep = `{"events":${"[".repeat(5_000)}${"]".repeat(5_000)}}`;
    assert.equal(
      (await call("/v1/sessions/sesn_1/events", { method: "POST", body: deep })).status,
      400,
      "[A112]",
    );
    const broken = await call("/v1/sessions/sesn_1/events", { method: "POST", body: "{" });
    assert.equal(broken.status, 400);
    const bad: [unknown, RegExp][] = [
      [{}, /events/],
      [{ events: [{ type: "agent.message", content: [] }] }, /events\[0\]\.type/],
      [{ events: [{ type: "user.message", content: "hi", colour: "red" }] }, /events\[0\]\.colour/],
      [
        { events: [{ type: "user.define_outcome", description: "x" }] },
        /user\.define_outcome.*not supported/,
      ],
      [{ events: [{ type: "user.message", content: [{ type: "redacted" }] }] }, /redacted/],
      [
        { events: [{ type: "user.tool_confirmation", tool_use_id: "sevt_1", result: "maybe" }] },
        /allow or deny/,
      ],
    ];
    for (const [body, message] of bad) {
      const response = await post("/v1/sessions/sesn_1/events", body);
      assert.equal(response.status, 400);
      assert.match((await errorOf(response)).error.message, message);
    }
    assert.deepEqual(played.emitted, []);
  });

  it("sends a user's blocks on as they came, under ids of its own", async () => {
    const block = { type: "text", text: 'zwölf \u0000 "x"', z: 1, a: null };
    const response = await post("/v1/sessions/sesn_1/events", {
      events: [{ type: "user.message", content: [block] }],
    });
    assert.equal(response.status, 200);
    const { data } = (await response.json()) as {
      data: { id: string; content: unknown[]; processed_at: null }[];
    };
    const sent = played.emitted[0]?.events[0];
    assert.equal(data[0]?.id, sent?.id);
    assert.match(sent?.id ?? "", /^sevt_/);
    assert.deepEqual(data[0]?.content, [block]);
    assert.equal(data[0]?.processed_at, null);
    // The next stream is told of a send that nobody saw; the tests below begin without one.
    const stream = await openStream(mesh.rest, KEY);
    await played.watch(1);
    stream.destroy();
  });

  it("writes what a model generated byte for byte [M25]", async () => {
    const input = '{"z":12345678901234567890,"a":1.0,"s":"\\u00e9"}';
    played.events = [
      event(1n, "agent.tool_use", {
        $case: "agentToolUse",
        value: {
          block: undefined,
          modelRequestStartId: "",
          blockIndex: 0,
          providerCallId: "",
          name: "bash",
          inputJson: Buffer.from(input),
          permission: 1,
          policy: "always_allow",
          evaluationReason: "",
          evaluator: "",
        },
      }),
    ];
    const body = await (await call("/v1/sessions/sesn_1/events")).text();
    assert.ok(body.includes(`"input":${input}`), body);
  });

  it("says how a call was decided on, in the words of the public API", async () => {
    const toolCall = (position: bigint, permission: 1 | 2 | 3, policy: string, evaluationReason: string) =>
      event(position, "agent.mcp_tool_use", {
        $case: "agentMcpToolUse",
        value: {
          ...{ block: undefined, modelRequestStartId: "", blockIndex: 0, providerCallId: "" },
          ...{ mcpServerName: "s", name: "n", inputJson: Buffer.from("{}"), evaluator: "rules/1" },
          ...{ permission, policy, evaluationReason },
        },
      });
    played.events = [
      toolCall(1n, 1, "always_allow", ""),
      toolCall(2n, 1, "auto", ""),
      toolCall(3n, 2, "auto", "indeterminate"),
      toolCall(4n, 3, "auto", "high_risk"),
      toolCall(5n, 3, "auto", "indeterminate"),
      toolCall(6n, 3, "unknown_tool", ""),
    ];
    const answer = await (await call("/v1/sessions/sesn_1/events")).json();
    const { data } = answer as { data: Record<string, unknown>[] };
    const auto = (evaluated: unknown) => ({ type: "auto", evaluated_permission: evaluated });
    assert.deepEqual(
      data.map((shown) => [shown.evaluated_permission, shown.evaluation]),
      [
        ["allow", { type: "always_allow" }],
        ["allow", auto({ type: "allow" })],
        ["ask", auto({ type: "ask", reason_code: "indeterminate" })],
        ["deny", auto({ type: "deny", reason_code: "high_risk" })],
        ["deny", auto({ type: "deny", reason_code: "indeterminate" })],
        ["deny", undefined],
      ],
    );
  });

  it("hides our own events and empty texts, and pages over the rest in both orders", async () => {
    const empty = event(3n, "agent.message", {
      $case: "agentMessage",
      value: { block: text(""), modelRequestStartId: "", blockIndex: 0 },
    });
    const own = event(2n, "ganglion.lease_acquired", {
      $case: "ganglionLeaseAcquired",
      value: { owner: "", epoch: 1n, isTakeover: false },
    });
    played.events = [userMessage(1n, "a"), own, empty, userMessage(4n, "b"), idle(5n)];
    for (const [order, wanted] of [
      ["asc", ["sevt_1", "sevt_4", "sevt_5"]],
      ["desc", ["sevt_5", "sevt_4", "sevt_1"]],
    ] as const) {
      const ids: string[] = [];
      for (let page: string | null = ""; page !== null; ) {
        const query = `limit=1&order=${order}${page ? `&page=${page}` : ""}`;
        const answer = await (await call(`/v1/sessions/sesn_1/events?${query}`)).json();
        const { data, next_page: next } = answer as { data: { id: string }[]; next_page: string | null };
        ids.push(...data.map(({ id }) => id));
        page = next;
      }
      assert.deepEqual(ids, wanted);
    }
    const other = await (await call("/v1/sessions/sesn_1/events?limit=1&order=asc")).json();
    const { next_page: page } = other as { next_page: string };
    assert.equal((await call(`/v1/sessions/sesn_1/events?order=desc&page=${page}`)).status, 400);
  });

  it("says when a message was read: when a model request had consumed it", async () => {
    const start = event(3n, "span.model_request_start", {
      $case: "spanModelRequestStart",
      value: {
        consumedPosition: 1n,
        model: "",
        contextStrategy: "",
        requestSha256: Buffer.alloc(0),
        attempt: 1,
        purpose: 0,
        stablePrefixBytes: 0n,
        stablePrefixSha256: Buffer.alloc(0),
      },
    });
    played.events = [userMessage(1n, "read"), userMessage(2n, "not yet"), start];
    const answer = await (await call("/v1/sessions/sesn_1/events?types[]=user.message")).json();
    const { data } = answer as { data: { processed_at: string | null }[] };
    assert.deepEqual(
      data.map(({ processed_at: at }) => at),
      ["2023-11-14T22:13:20Z", null],
    );
  });
});
