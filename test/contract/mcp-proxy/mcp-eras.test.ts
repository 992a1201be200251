import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { newId } from "../../../services/common/ids/new-id.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { answer, HostileMcp, type Rpc, tool } from "./hostile-mcp.ts";
import { OldMcp } from "./old-mcp.ts";
import { type BoundSession, briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

const SECRET = `sk-${randomBytes(16).toString("hex")}`;
const MODERN = "2026-07-28";

describe("every era of MCP servers", () => {
  let kit: ProxyKit;
  let upstream: HostileMcp;
  let old: OldMcp;

  before(async function () {
    this.timeout(60_000);
    upstream = await HostileMcp.start();
    old = await OldMcp.start();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: `${upstream.host},${old.host}` });
  });
  beforeEach(() => {
    upstream.misbehave = () => false;
    upstream.seen.length = 0;
  });
  after(async () => {
    await kit?.stop();
    await upstream?.stop();
    await old?.stop();
  });

  const bound = (url = `${upstream.url}/${newId("req")}`) =>
    kit.bound({ servers: [{ name: "demo", url, secret: SECRET }] });
  const metadata = (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } });
  const list = async (of: BoundSession) =>
    (await kit.mcp()).listTools({ mcpServerName: "demo" }, metadata(of));
  const call = async (of: BoundSession, input: object = {}, ms = 10_000, key = newId("sevt")) => {
    const request = {
      mcpServerName: "demo",
      name: "one",
      inputJson: Buffer.from(JSON.stringify(input)),
      key,
      timeout: { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 },
      acknowledgedKeys: [],
    };
    const { call: made } = await (await kit.mcp()).callTool(request, metadata(of));
    const text = (made?.content ?? [])
      .map(({ data }) => (data?.$case === "json" ? data.value.toString() : ""))
      .join();
    return { ...made, text };
  };

  describe("the era without initialize [M24]", () => {
    const discovered = (supportedVersions: string[]) => ({
      resultType: "complete",
      supportedVersions,
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "modern", version: "1" } },
    });
    /** A server that knows no sessions: whatever is asked carries its version and who asks. */
    const speakModern = (more: (rpc: Rpc, response: ServerResponse) => boolean = () => false) => {
      upstream.misbehave = (rpc, request, response) => {
        const meta = (rpc.params?._meta ?? {}) as Record<string, unknown>;
        if (meta["io.modelcontextprotocol/protocolVersion"] !== MODERN) {
          response.writeHead(400, { "content-type": "application/json" });
          const error = { code: -32022, message: "version", data: { supported: [MODERN] } };
          response.end(JSON.stringify({ jsonrpc: "2.0", id: rpc.id ?? null, error }));
          return true;
        }
        assert.equal(request.headers["mcp-method"], rpc.method);
        assert.equal(request.headers["mcp-protocol-version"], MODERN);
        if (more(rpc, response)) return true;
        if (rpc.method === "server/discover") answer(response, rpc, discovered([MODERN]));
        else if (rpc.method === "tools/list")
          answer(response, rpc, {
            resultType: "complete",
            tools: [tool("one")],
            ttlMs: 0,
            cacheScope: "private",
          });
        else {
          const content = [{ type: "text", text: JSON.stringify(rpc.params?.arguments) }];
          answer(response, rpc, { resultType: "complete", content });
        }
        return true;
      };
    };

    it("is found by asking, and used without initialize or session", async () => {
      speakModern();
      const session = await bound();
      assert.deepEqual(
        (await list(session)).tools.map(({ name }) => name),
        ["one"],
      );
      const made = await call(session, { a: 1 });
      assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      assert.match(made.text, /\\"a\\":1/);
      assert.equal(upstream.of("initialize").length, 0);
      assert.deepEqual(
        upstream.seen.map(({ rpc }) => rpc?.method),
        ["server/discover", "tools/list", "tools/call"],
      );
      for (const { headers } of upstream.seen) {
        assert.equal(headers.authorization, `Bearer ${SECRET}`);
        assert.equal(headers["mcp-session-id"], undefined);
      }
    });

    it("arguments that its schema wants repeated in headers are", async () => {
      const structured = '{"id":9007199254740993}';
      const inputSchema = {
        type: "object",
        properties: { region: { type: "string", "x-mcp-header": "Region" } },
      };
      speakModern((rpc, response) => {
        if (rpc.method === "tools/call") {
          response.writeHead(200, { "content-type": "application/json" });
          const result = `{"resultType":"complete","content":[],"structuredContent":${structured}}`;
          response.end(`{"jsonrpc":"2.0","id":${rpc.id},"result":${result}}`);
          return true;
        }
        if (rpc.method !== "tools/list") return false;
        const tools = [{ name: "one", inputSchema }];
        answer(response, rpc, { resultType: "complete", tools, ttlMs: 0, cacheScope: "private" });
        return true;
      });
      const made = await call(await bound(), { region: "eu" });
      assert.equal(
        Buffer.from(made.structuredContentJson ?? []).toString(),
        structured,
        "as it was written [M25]",
      );
      assert.equal(upstream.of("tools/call")[0]?.headers["mcp-param-region"], "eu");
    });

    it("a call that is given up ends its request", async () => {
      const closed = Promise.withResolvers<void>();
      const begun = Promise.withResolvers<void>();
      speakModern((rpc, response) => {
        if (rpc.method !== "tools/call") return false;
        response.on("close", closed.resolve);
        begun.resolve();
        return true;
      });
      const session = await bound();
      const key = newId("sevt");
      const calling = call(session, {}, 10_000, key);
      await begun.promise;
      await (await kit.mcp()).cancelCall({ key }, metadata(session));
      assert.equal((await calling).outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
      await closed.promise;
    });

    it("a tool that asks back is a result that says so", async () => {
      speakModern((rpc, response) => {
        if (rpc.method !== "tools/call") return false;
        const params = {
          message: "Sure?",
          requestedSchema: { type: "object", properties: {} },
          mode: "form",
        };
        const inputRequests = { sure: { method: "elicitation/create", params } };
        answer(response, rpc, { resultType: "input_required", inputRequests, requestState: "x" });
        return true;
      });
      const made = await call(await bound());
      assert.equal(made.isError, true);
      assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
      assert.match(made.text, /asks for input/);
      assert.equal(upstream.of("tools/call").length, 1);
    });

    it("an echo of the credential in an error of it is removed [A058]", async () => {
      speakModern((rpc, response) => {
        if (rpc.method !== "tools/call") return false;
        response.writeHead(400, { "content-type": "application/json" });
        const error = { code: -32602, message: `no: ${SECRET}`, data: { secret: SECRET } };
        response.end(JSON.stringify({ jsonrpc: "2.0", id: rpc.id, error }));
        return true;
      });
      const session = await bound();
      const made = await call(session);
      assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_NOT_RUN);
      assert.match(made.text, /no: \[REDACTED:vcrd_/);
      assert.equal((await kit.records(session.sessionId)).at(-1)?.redactions, 2n);
    });
  });

  it("a first call that is slow is waited for, on a connection that it had to make itself", async () => {
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method !== "tools/call") return false;
      void pause(900).then(() => answer(response, rpc, { content: [{ type: "text", text: "late" }] }));
      return true;
    };
    const made = await call(await bound());
    assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
  });

  it("a server that falls over the newer era's question is asked in the older one", async () => {
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method === "server/discover") response.writeHead(500).end("what?");
      return rpc.method === "server/discover";
    };
    const session = await bound();
    assert.equal((await call(session)).outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.equal(upstream.of("initialize").length, 1);
  });

  it("of three servers of a session one forgets it: the others are left alone [B086]", async () => {
    const paths = ["a", "b", "c"].map((name) => ({ name, url: `${upstream.url}/${newId("req")}/${name}` }));
    const own = await kit.bound({ servers: paths });
    const callOf = async (mcpServerName: string) =>
      (await kit.mcp()).callTool(
        {
          ...{ mcpServerName, name: "one", inputJson: Buffer.from("{}"), key: newId("sevt") },
          ...{ timeout: undefined, acknowledgedKeys: [] },
        },
        metadata(own),
      );
    for (const { name } of paths) await callOf(name);
    assert.equal(upstream.of("initialize").length, 3);
    let gone = "";
    upstream.misbehave = (rpc, request, response) => {
      const id = String(request.headers["mcp-session-id"]);
      if (rpc.method !== "tools/call" || !request.url?.endsWith("/b")) return false;
      gone ||= id;
      if (gone !== id) return false;
      response.writeHead(404).end();
      return true;
    };
    for (const { name } of paths) {
      assert.equal((await callOf(name)).call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    }
    assert.equal(upstream.of("initialize").length, 4);
    assert.equal(upstream.of("tools/call").length, 7);
  });

  it("an upstream's session id is of no use to another session [A044]", async () => {
    const [a, b] = [await bound(), await bound()];
    await call(a);
    const idOfA = String(upstream.of("tools/call")[0]?.headers["mcp-session-id"]);
    const own = await (await kit.mcp()).callTool(
      {
        ...{ mcpServerName: "demo", name: "one", inputJson: Buffer.from("{}"), key: newId("sevt") },
        ...{ timeout: undefined, acknowledgedKeys: [] },
      },
      { metadata: { "ganglion-session-token": b.token, "mcp-session-id": idOfA } },
    );
    assert.equal(own.call?.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
    assert.notEqual(upstream.of("tools/call")[1]?.headers["mcp-session-id"], idOfA);
    const before = upstream.seen.length;
    const other = await kit.mcp("harness-2");
    const refused = await failureOf(
      other.listTools(
        { mcpServerName: "demo" },
        { metadata: { "ganglion-session-token": a.token, "mcp-session-id": idOfA } },
      ),
    );
    assert.deepEqual([refused.code, refused.reason], ["PERMISSION_DENIED", "CALLER_MISMATCH"]);
    assert.equal(upstream.seen.length, before);
  });

  describe("HTTP with one stream of events, as before 2025", () => {
    it("is found by its refusal of a POST, and used", async () => {
      const session = await bound(old.url);
      assert.deepEqual(
        (await list(session)).tools.map(({ name }) => name),
        ["one"],
      );
      const made = await call(session, { a: 1 });
      assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_COMPLETED);
      assert.match(made.text, /\\"a\\":1/);
      assert.ok(old.authorizations.every((value) => value === `Bearer ${SECRET}`));
    });

    it("has no stream open outside of a recorded request [L6]", async () => {
      const session = await bound(old.url);
      await call(session);
      await old.idle();
      assert.deepEqual(briefly(await kit.records(session.sessionId)), [
        "decision allow",
        "dispatch",
        "outcome ok",
      ]);
      assert.equal(old.open, 0);
    });

    it("an echo of the credential in its stream is removed, whatever the pieces [A058] [A060]", async () => {
      old.text = () => `told: ${SECRET} and ${Buffer.from(SECRET).toString("base64")}`;
      old.pieces = 3;
      try {
        const made = await call(await bound(old.url));
        assert.match(made.text, /told: \[REDACTED:vcrd_\w+\] and \[REDACTED:vcrd_\w+\]/);
      } finally {
        old.pieces = 0;
        old.text = undefined;
      }
    });

    it("the numbers of structured content are those that the server wrote [M25]", async () => {
      const structured = '{"id":9007199254740993,"far":1e400}';
      old.structured = structured;
      old.pieces = 5;
      try {
        const made = await call(await bound(old.url));
        assert.equal(Buffer.from(made.structuredContentJson ?? []).toString(), structured);
      } finally {
        old.pieces = 0;
        old.structured = undefined;
      }
    });

    it("a stream that ends before the answer: it is not known what became of the call", async () => {
      old.cuts = true;
      try {
        const made = await call(await bound(old.url));
        assert.equal(made.outcome, ToolOutcome.TOOL_OUTCOME_UNKNOWN);
      } finally {
        old.cuts = false;
      }
    });
  });
});
