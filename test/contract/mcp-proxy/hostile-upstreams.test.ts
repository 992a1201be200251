import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { newId } from "../../../services/common/ids/new-id.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { answer, answerInPieces, HostileMcp, type Misbehaviour, type Rpc, tool } from "./hostile-mcp.ts";
import { type BoundSession, briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

const SECRET = `sk-${randomBytes(12).toString("base64")}/+"end`;

describe("upstreams that mean harm", () => {
  let kit: ProxyKit;
  let upstream: HostileMcp;
  let session: BoundSession;

  before(async function () {
    this.timeout(60_000);
    upstream = await HostileMcp.start();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: upstream.host });
    session = await bound();
  });

  beforeEach(() => {
    upstream.misbehave = () => false;
  });

  after(async () => {
    await kit?.stop();
    await upstream?.stop();
  });

  const bound = () => kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: SECRET }] });
  const metadata = (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } });
  const list = async (of = session) => (await kit.mcp()).listTools({ mcpServerName: "demo" }, metadata(of));
  const call = async (
    inputJson = "{}",
    more: { of?: BoundSession; key?: string; timeoutMs?: number } = {},
  ) => {
    const ms = more.timeoutMs ?? 10_000;
    const timeout = { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
    const key = more.key ?? newId("sevt");
    const request = {
      mcpServerName: "demo",
      name: "one",
      inputJson: Buffer.from(inputJson),
      key,
      timeout,
      acknowledgedKeys: [],
    };
    const { call: made } = await (await kit.mcp()).callTool(request, metadata(more.of ?? session));
    const text = (made?.content ?? [])
      .map(({ data }) => (data?.$case === "json" ? data.value.toString() : ""))
      .join();
    return { ...made, text };
  };
  const onCall =
    (how: Misbehaviour): Misbehaviour =>
    (rpc, request, response) =>
      rpc.method === "tools/call" && how(rpc, request, response);
  const forms = (authorization: string) => [
    authorization,
    Buffer.from(authorization).toString("base64"),
    Buffer.from(`x${authorization}`).toString("base64"),
    Buffer.from(authorization).toString("hex"),
    encodeURIComponent(authorization),
  ];

  for (const size of [1, 7, 100_000]) {
    it(`an echo of the credential, in events of ${size}-byte pieces: removed in each form [A058] [A060] [L5]`, async () => {
      upstream.misbehave = onCall((rpc, request, response) => {
        const content = forms(String(request.headers.authorization)).map((text) => ({ type: "text", text }));
        answerInPieces(response, rpc, { content }, size);
        return true;
      });
      const { text, outcome } = await call();
      assert.equal(outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      assert.equal(text.match(/\[REDACTED:vcrd_[0-9a-z]+\]/g)?.length, 5);
      for (const form of forms(SECRET)) assert.ok(!text.includes(form));
      const last = (await kit.records(session.sessionId)).at(-1);
      assert.equal(last?.redactions, 5n);
    });
  }

  it("what a server reports of a call's progress: without the credential, bounded, and fit for a terminal [B092] [A058] [L5]", async () => {
    const asked = Promise.withResolvers<{ rpc: Rpc; authorization: string; response: ServerResponse }>();
    upstream.misbehave = onCall((rpc, request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      asked.resolve({ rpc, authorization: String(request.headers.authorization), response });
      return true;
    });
    const key = newId("sevt");
    const calling = call("{}", { key });
    const { rpc, authorization, response } = await asked.promise;
    const { progressToken } = (rpc.params?._meta ?? {}) as { progressToken?: unknown };
    const reports = (await kit.mcp()).watchCall({ key }, metadata(session));
    let n = 0;
    const say = async (message: string, write = (json: string) => json) => {
      const params = { progressToken, progress: ++n, message };
      const json = JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params });
      response.write(`event: message\ndata: ${write(json)}\n\n`);
      const { value } = await reports.next();
      assert.equal(value?.progress, n);
      return value?.message ?? "";
    };
    const told: string[] = [];
    for (const form of forms(authorization)) told.push(await say(form));
    // JSON lets any character be written as a number: as bytes this is no form of the secret, as text it is.
    const numbered = (text: string) =>
      text.replace(/./g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const inJson = JSON.stringify(SECRET).slice(1, -1);
    told.push(await say(`hidden ${SECRET}`, (json) => json.replace(inJson, numbered(SECRET))));
    told.push(await say(`${"x".repeat(500)}${SECRET}`, (json) => json.replace(inJson, numbered(SECRET))));
    for (const text of told) {
      assert.match(text, /\[REDACTED|x…$/);
      for (const form of [...forms(SECRET), SECRET.slice(0, 10)]) assert.ok(!text.includes(form), text);
    }
    assert.equal(await say("red: \u001b[31m\r\n"), "red: \\u001b[31m\\u000d\\u000a");
    assert.equal((await say("y".repeat(60_000))).length, 512);
    assert.equal(await say("z".repeat(70_000)), "");
    const content = [{ type: "text", text: "done" }];
    response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result: { content } })}\n\n`);
    assert.match((await calling).text, /done/);
    assert.equal((await reports.next()).done, true);
    const logged = kit.service.output();
    assert.ok(!logged.includes(SECRET));
  });

  const codings: Record<string, (text: string) => Buffer> = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
  };
  for (const [coding, encode] of Object.entries(codings)) {
    it(`an answer in ${coding}, though asked for plain: decoded and searched [A062]`, async () => {
      upstream.misbehave = onCall((rpc, _request, response) => {
        const content = [{ type: "text", text: `told: ${SECRET}` }];
        const body = encode(JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result: { content } }));
        response.writeHead(200, { "content-type": "application/json", "content-encoding": coding }).end(body);
        return true;
      });
      const { outcome, text } = await call();
      assert.equal(outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      assert.match(text, /told: \[REDACTED:vcrd_/);
      assert.equal(upstream.seen.at(-1)?.headers["accept-encoding"], "identity");
      assert.equal((await kit.records(session.sessionId)).at(-1)?.redactions, 1n);
    });
  }

  it("a coding that nobody knows, one that is none, and a bomb: not passed on [A062] [A030]", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20));
    const bodies: [string, Buffer][] = [
      ["secret", Buffer.from(SECRET)],
      ["gzip, br", gzipSync(SECRET)],
      ["gzip", Buffer.from(`{"told":"${SECRET}"}`)],
      ["gzip", gzipSync(SECRET).subarray(0, -4)],
      ["gzip", bomb],
    ];
    for (const [coding, body] of bodies) {
      upstream.misbehave = onCall((_rpc, _request, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-encoding": coding }).end(body);
        return true;
      });
      const made = await call();
      assert.notEqual(made.isError, false, coding);
      assert.ok(!JSON.stringify(made.text).includes("told"), coding);
    }
  });

  it("sees nothing of the caller's: no session token, no principal [A046]", async () => {
    await call();
    const all = JSON.stringify(upstream.seen);
    assert.ok(!all.includes(session.token));
    assert.ok(!all.includes(session.sessionId));
    assert.equal(upstream.seen.at(-1)?.headers.authorization, `Bearer ${SECRET}`);
  });

  it("opens no stream and says no farewell outside of a recorded request [L6]", async () => {
    const own = await bound();
    await list(own);
    await kit.raiseFence(own.sessionId, 0n, true);
    assert.deepEqual([...new Set(upstream.seen.map(({ method }) => method))], ["POST"]);
  });

  it("lost our session: one initialization, and the caller sees success [B085]", async () => {
    await call();
    const before = upstream.of("initialize").length;
    upstream.forget();
    const { outcome } = await call('{"again":true}');
    assert.equal(outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.equal(upstream.of("initialize").length, before + 1);
  });

  it("130 tools at 50 a page: all of them [B090]", async () => {
    const all = Array.from({ length: 130 }, (_, i) => tool(`tool-${i}`));
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method !== "tools/list") return false;
      const from = Number(rpc.params?.cursor ?? 0);
      const next = from + 50 < all.length ? { nextCursor: String(from + 50) } : {};
      answer(response, rpc, { tools: all.slice(from, from + 50), ...next });
      return true;
    };
    const { tools } = await list();
    assert.deepEqual(
      tools.map(({ name }) => name),
      all.map(({ name }) => name),
    );
  });

  it("pages that never end: refused", async () => {
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method !== "tools/list") return false;
      answer(response, rpc, { tools: [tool("one")], nextCursor: "same" });
      return true;
    };
    assert.equal((await failureOf(list())).reason, "UPSTREAM_MALFORMED");
  });

  const broken: [string, Misbehaviour, ToolOutcome][] = [
    [
      "a connection that breaks",
      (_rpc, request) => Boolean(request.socket.destroy()),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "a stream that ends without an answer",
      (_rpc, _request, response) =>
        Boolean(response.writeHead(200, { "content-type": "text/event-stream" }).end(": hi\n\n")),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "a page of HTML",
      (_rpc, _request, response) =>
        Boolean(response.writeHead(200, { "content-type": "text/html" }).end("<html>")),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "JSON that is none",
      (_rpc, _request, response) =>
        Boolean(response.writeHead(200, { "content-type": "application/json" }).end("{")),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "a status of 500",
      (_rpc, _request, response) => Boolean(response.writeHead(500).end("stack trace")),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "a status of 429",
      (_rpc, _request, response) => Boolean(response.writeHead(429).end()),
      ToolOutcome.TOOL_OUTCOME_NOT_RUN,
    ],
    [
      "100 KiB of headers [A030]",
      (_rpc, _request, response) => Boolean(response.writeHead(200, { "x-big": "x".repeat(100_000) }).end()),
      ToolOutcome.TOOL_OUTCOME_UNKNOWN,
    ],
    [
      "an answer of 20 MiB [A030]",
      (rpc, _request, response) => {
        answer(response, rpc, { content: [{ type: "text", text: "x".repeat(20 << 20) }] });
        return true;
      },
      ToolOutcome.TOOL_OUTCOME_COMPLETED,
    ],
    ["silence", () => true, ToolOutcome.TOOL_OUTCOME_CANCELLED],
    [
      "an error of JSON-RPC",
      (rpc, _request, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(
          JSON.stringify({ jsonrpc: "2.0", id: rpc.id, error: { code: -32602, message: "bad input" } }),
        );
        return true;
      },
      ToolOutcome.TOOL_OUTCOME_NOT_RUN,
    ],
  ];
  for (const [what, how, expected] of broken) {
    it(`${what}: a result that says what is known, and the session goes on [A030]`, async () => {
      upstream.misbehave = onCall(how);
      const key = newId("sevt");
      const first = await call("{}", { key, timeoutMs: what === "silence" ? 600 : 15_000 });
      assert.equal(first.outcome, expected);
      assert.equal(first.isError, true);
      assert.ok(!first.text.includes("stack trace"));
      upstream.misbehave = () => false;
      assert.equal((await call("{}", { key })).outcome, expected, "the journal says the same");
      assert.equal((await call()).outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    });
  }

  it("keeps the numbers of the input as they are written [M25]", async () => {
    await call('{"big":9007199254740993,"one":1.0,"far":1e400}');
    const sent = upstream.of("tools/call").at(-1)?.text;
    assert.ok(sent?.includes('"arguments":{"big":9007199254740993,"one":1.0,"far":1e400}'), sent);
  });

  const STRUCTURED = '{"id":9007199254740993,"price":0.30000000000000000001,"one":1.0,"far":1e400}';
  const withStructured = (id: unknown) =>
    `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":${STRUCTURED}}}`;
  for (const [how, type, write] of [
    ["in plain JSON", "application/json", (id) => withStructured(id)],
    ["spread over lines", "application/json", (id) => withStructured(id).replaceAll('"id"', '\n "id"')],
    [
      "in an event",
      "text/event-stream",
      (id) => `: hello\nid: 9007199254740995\ndata: ${withStructured(id)}\n\n`,
    ],
    [
      "in an event of several lines, after another one",
      "text/event-stream",
      (id) => {
        const told =
          '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}';
        const lines = withStructured(id).replaceAll(/([{,])"/g, '$1\r\ndata: "');
        return `data: ${told}\r\n\r\nevent: message\r\ndata: ${lines}\r\n\r\n`;
      },
    ],
  ] satisfies [how: string, type: string, write: (id: unknown) => string][]) {
    it(`keeps the numbers of structured content as they are written, ${how} [M25]`, async () => {
      upstream.misbehave = onCall((rpc, _request, response) => {
        response.writeHead(200, { "content-type": type });
        const bytes = Buffer.from(write(rpc.id));
        for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7));
        response.end();
        return true;
      });
      const made = await call();
      assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      const text = Buffer.from(made.structuredContentJson ?? []).toString();
      assert.equal(text.replaceAll(/\s/g, ""), STRUCTURED);
    });
  }

  it("takes the credential out of structured content all the same [A058]", async () => {
    upstream.misbehave = onCall((rpc, request, response) => {
      const structuredContent = { told: request.headers.authorization, n: 1 };
      answer(response, rpc, { content: [], structuredContent });
      return true;
    });
    const text = Buffer.from((await call()).structuredContentJson ?? []).toString();
    assert.match(text, /^\{"told":"Bearer \[REDACTED:vcrd_\w+\]","n":1\}$/);
  });

  it("slow A and fast B of two sessions with the same request ids: each gets its own [A042] [B095]", async () => {
    const sessions = await Promise.all([bound(), bound(), bound()]);
    await Promise.all(
      sessions.map(async (of, s) => {
        for (let i = 0; i < 40; i += 1) {
          const { text } = await call(JSON.stringify({ session: s, n: i }), { of });
          assert.match(text, new RegExp(`\\\\"session\\\\":${s},\\\\"n\\\\":${i}`));
        }
      }),
    );
  });

  it("one dispatch for each call, and every request's records are complete", async () => {
    const own = await bound();
    await list(own);
    await call("{}", { of: own });
    const records = briefly(await kit.records(own.sessionId));
    const one = ["decision allow", "dispatch", "outcome ok"];
    assert.deepEqual(records, [...one, ...one]);
    const open = await kit.sql("ganglion_owner", "SELECT * FROM proxy.open_requests");
    assert.deepEqual(open, []);
  });
});
