import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { EmitEventsRequest } from "../../services/gen/ganglion/session/v1/session_service.ts";
import { HostileMcp } from "../contract/mcp-proxy/hostile-mcp.ts";
import { answerOf, bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { spareAddress, wholeStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

type Json = { [name: string]: unknown };

/** Zero, false, null, empty and absent, in places where something could confuse them. */
const EMPTIES = {
  zero: 0,
  no: false,
  nothing: null,
  empty: "",
  none: [],
  bare: {},
  deep: [[null, [{ x: null, y: "" }]], [], [0, false, ""]],
};
const ABSENT = "absent";

describe("values on their way through the whole mesh", function () {
  this.timeout(90_000);
  let stage: Stage;

  before(async function () {
    stage = await wholeStage(this);
  });

  /** REST's answer as it is on the wire. */
  const restEvents = async (sessionId: string): Promise<string> => {
    const url = `${stage.mesh.rest}/v1/sessions/${sessionId}/events?limit=100`;
    const headers = { "x-api-key": stage.mesh.apiKey, "anthropic-beta": "managed-agents-2026-04-01" };
    const answer = await fetch(url, { headers });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return text;
  };
  /** Bodies of the model's requests that name a word. */
  const modelRequests = async (word: string): Promise<Json[]> =>
    (await stage.model.journal.entries())
      .filter(({ kind, body }) => kind === "request" && JSON.stringify(body).includes(word))
      .map(({ body }) => body as Json);
  const emitText = async (sessionId: string, json: string): Promise<void> => {
    const content = [{ type: "text", data: { $case: "json" as const, value: Buffer.from(json) } }];
    const body = { $case: "userMessage" as const, value: { content } };
    await stage.sessions.emitEvents(EmitEventsRequest.fromPartial({ sessionId, events: [{ body }] }));
  };

  it("the five empties stay five different things: model, brain, hand, log, REST and model again [B147, B146, M09]", async () => {
    const sessionId = await stage.newSession();
    const word = randomUUID();
    const input = { command: `echo ${word}`, timeout_ms: 30_000 };
    const odd = { message: word, ...EMPTIES };
    await stage.turn(
      sessionId,
      script([
        { calls: [{ name: "bash", input }] },
        { calls: [{ name: "mcp__everything__echo", input: odd }] },
      ]),
    );
    const events = await stage.log(sessionId);
    checkLog(events);
    const [use] = bodiesOf(events, "agentMcpToolUse");
    const logged = JSON.parse(Buffer.from(use?.inputJson ?? []).toString()) as Json;
    assert.deepEqual(logged, odd);
    assert.ok(!(ABSENT in logged));
    const shown = (JSON.parse(await restEvents(sessionId)) as { data: Json[] }).data;
    assert.deepEqual(shown.find(({ type }) => type === "agent.mcp_tool_use")?.input, odd);
    const call = (await stage.mcp.journal.entries()).find(
      ({ kind, arguments: args }) => kind === "call" && (args as Json | undefined)?.message === word,
    );
    assert.deepEqual(call?.arguments, odd, "the server got what the model wrote");
    const last = (await modelRequests(word)).at(-1) as { messages: { content: Json[] }[] };
    const sent = last.messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .find(({ type, name }) => type === "tool_use" && name === "mcp__everything__echo");
    assert.deepEqual(sent?.input, odd, "the model got back what it wrote");
  });

  it("JSON of a client comes back byte by byte, big numbers and nulls included [B144, B146, M09]", async () => {
    const sessionId = await stage.newSession();
    const json =
      '{ "type":"text","text":"scenario: plain words=2", "big":12345678901234567890,"z":1e2,"a":100.0,"n":-0,' +
      '"deep":[null,{"x":null,"y":[[],{}]}],"zero":0,"no":false,"empty":"" }';
    await emitText(sessionId, json);
    const [event] = await stage.until(sessionId, 0n, "user.message").then((all) => all.slice(-1));
    assert.equal(event?.body?.$case, "userMessage");
    const data = event.body.value.content[0]?.data;
    assert.equal(data?.$case === "json" && Buffer.from(data.value).toString(), json);
    assert.ok((await restEvents(sessionId)).includes('"big":12345678901234567890'), "REST keeps the digits");
    await stage.until(sessionId, 0n, "session.status_idle");
    checkLog(await stage.log(sessionId));
  });

  it("numbers of an MCP server's structured content reach log, REST and model as they are written [M25, B103]", async () => {
    const structured = '{"id":9007199254740993,"price":0.30000000000000000001}';
    const server = await HostileMcp.start(Number(spareAddress().split(":")[1]));
    try {
      server.misbehave = (rpc, _request, response) => {
        if (rpc.method !== "tools/call") return false;
        response.writeHead(200, { "content-type": "application/json" });
        const result = `{"content":[{"type":"text","text":"one row"}],"structuredContent":${structured}}`;
        response.end(`{"jsonrpc":"2.0","id":${rpc.id},"result":${result}}`);
        return true;
      };
      const agent = await stage.sdk.beta.agents.create({
        name: "reads rows",
        model: "claude-opus-5-5",
        mcp_servers: [{ type: "url", name: "rows", url: server.url }],
        tools: [
          {
            type: "mcp_toolset",
            mcp_server_name: "rows",
            default_config: { enabled: true, permission_policy: { type: "always_allow" } },
          },
        ],
      });
      const { id: sessionId } = await stage.sdk.beta.sessions.create({
        agent: agent.id,
        environment_id: stage.environmentId,
      });
      const word = randomUUID();
      const calls = [{ name: "mcp__rows__one", input: { word } }];
      const events = await stage.turn(sessionId, script([{ calls }]));
      const [result] = bodiesOf(events, "agentMcpToolResult");
      assert.equal(textOf(result?.content ?? []), `one row${structured}`);
      const quoted = JSON.stringify(structured).slice(1, -1);
      assert.ok((await restEvents(sessionId)).includes(quoted), "REST");
      assert.ok(JSON.stringify((await modelRequests(word)).at(-1)).includes(quoted), "the model");
    } finally {
      await server.stop();
    }
  });

  it("positions above 2^53 survive, and are strings in JSON [B144]", async () => {
    const sessionId = await stage.newSession();
    const far = 9_007_199_254_740_993n;
    const read = (file: string) => readFileSync(`${stage.mesh.tlsDir("migrations")}/${file}`, "utf8");
    const [host, port] = stage.mesh.address("postgres").split(":");
    const owner = new pg.Client({
      host: host as string,
      port: Number(port),
      database: "ganglion",
      user: "ganglion_owner",
      ssl: { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") },
    });
    await owner.connect();
    await owner.query("UPDATE session.sessions SET head = $2 WHERE session_id = $1", [
      sessionId,
      String(far),
    ]);
    await owner.end();
    const { session } = await stage.sessions.getSession({ sessionId });
    assert.equal(session?.headPosition, far);
    const event = { body: { $case: "userInterrupt" as const, value: { sessionThreadId: "" } } };
    const request = EmitEventsRequest.fromPartial({ sessionId, events: [event], expectedPosition: far });
    const stored = await stage.sessions.emitEvents(request);
    assert.equal(stored.headPosition, far + 1n);
    assert.equal(stored.stored[0]?.position, far + 1n);
    const [seen] = await stage.until(sessionId, far, "user.interrupt");
    assert.equal(seen?.position, far + 1n);
    const answer = (JSON.parse(await restEvents(sessionId)) as { data: Json[] }).data;
    assert.ok(
      answer.some(({ type }) => type === "user.interrupt"),
      "REST pages reach it",
    );
    const { Session } = await import("../../services/gen/ganglion/session/v1/session_service.ts");
    const now = (await stage.sessions.getSession({ sessionId })).session;
    assert.ok(now);
    assert.equal((Session.toJSON(now) as Json).headPosition, String(now.headPosition));
    assert.ok(now.headPosition > far);
  });

  it("output that is no UTF-8 reaches the model as text and hurts nobody [M11]", async () => {
    const sessionId = await stage.newSession();
    const word = randomUUID();
    const command = `printf 'a\\377\\376b \\303\\251 \\360\\237\\246\\212 c\\000d ${word} \\303'`;
    await stage.turn(sessionId, script([{ calls: [{ name: "bash", input: { command } }] }]));
    const events = await stage.log(sessionId);
    checkLog(events);
    const [result] = bodiesOf(events, "agentToolResult");
    const text = textOf(result?.content ?? []);
    assert.match(text, /^a\ufffd+b é 🦊 c/);
    assert.match(text, new RegExp(`d ${word} \ufffd$`));
    assert.equal(answerOf(events), "The script has ended.");
    const told = JSON.stringify((await modelRequests(word)).at(-1));
    assert.ok(told.includes("é 🦊"), "the model reads the same text");
    assert.ok((await restEvents(sessionId)).includes("é 🦊"));
  });

  it("a provider's odd and signed blocks go back to the model as they came [M09, M11]", async () => {
    const sessionId = await stage.newSession();
    // The model refuses thinking that was altered.
    const seen = await stage.turn(sessionId, "scenario: thinking");
    assert.equal(bodiesOf(seen, "sessionStatusIdle")[0]?.stopReason?.type, 1);
    assert.ok(bodiesOf(seen, "agentThinking").length >= 4);
    await stage.turn(sessionId, "scenario: unknown-block");
    const [odd] = bodiesOf(await stage.log(sessionId), "ganglionProviderBlock");
    assert.ok(odd?.block, "it is in the log");
    const data = odd.block.data;
    const block = JSON.parse(data?.$case === "json" ? Buffer.from(data.value).toString() : "null") as Json;
    const word = randomUUID();
    const after = await stage.turn(sessionId, `scenario: default\n${word}`);
    assert.match(answerOf(after), new RegExp(word));
    const [request] = await modelRequests(word);
    const blocks = (request as { messages: { content: Json[] }[] }).messages.flatMap(
      ({ content }) => content,
    );
    assert.deepEqual(
      blocks.find(({ type }) => type === block.type),
      block,
    );
  });

  it("U+0000 and half a surrogate pair pass through REST, and the turn goes on [M11]", async () => {
    const sessionId = await stage.newSession();
    const word = randomUUID();
    const seen = await stage.turn(sessionId, `nul \u0000, half \ud800, pair \ud83d\ude00 ${word}`);
    assert.match(answerOf(seen), new RegExp(word));
    const shown = (JSON.parse(await restEvents(sessionId)) as { data: Json[] }).data;
    const message = shown.find(({ type }) => type === "user.message") as { content: { text: string }[] };
    assert.match(message.content[0]?.text ?? "", /^nul \0, half .+, pair 😀 /u);
  });
});
