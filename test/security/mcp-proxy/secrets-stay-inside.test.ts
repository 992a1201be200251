import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { newId } from "../../../services/common/ids/new-id.ts";
import { HostileMcp } from "../../contract/mcp-proxy/hostile-mcp.ts";
import { type BoundSession, ProxyKit } from "../../contract/mcp-proxy/proxy-kit.ts";
import { NeedleIndex } from "../../kit/secret-scan/needles.ts";
import { scanFiles } from "../../kit/secret-scan/scan-files.ts";
import { scanProcess } from "../../kit/secret-scan/scan-process.ts";

const MCP_SECRET = `cnry_${randomBytes(30).toString("hex")}`;
const MODEL_SECRET = `sk-ant-${randomBytes(30).toString("hex")}`;

describe("credentials used by mcp-proxy", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let upstream: HostileMcp;
  let model: Server;
  let session: BoundSession;
  let index: NeedleIndex;
  const answers: string[] = [];

  before(async () => {
    upstream = await HostileMcp.start();
    // A model that says everything that it was sent, and fails every second time.
    let asked = 0;
    model = createServer((request, response) => {
      asked += 1;
      const text = JSON.stringify(request.headers);
      if (asked % 2 === 0) {
        response.writeHead(400, { "content-type": "application/json", "x-echo": text });
        response.end(
          JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: text } }),
        );
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const char of `data: ${text}\n\n`) response.write(char);
      response.end();
    });
    model.listen(0, "127.0.0.1");
    await once(model, "listening");
    const modelUrl = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
    kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: upstream.host,
      GANGLION_SCRIPTED_MODEL_URL: modelUrl,
      GANGLION_LOG_LEVEL: "debug",
    });
    await kit.storeModelKey(modelUrl, MODEL_SECRET);
    session = await kit.bound({
      models: ["m"],
      servers: [{ name: "demo", url: upstream.url, secret: MCP_SECRET }],
    });
    index = new NeedleIndex([
      { name: "MCP token", secret: MCP_SECRET.slice(5) },
      { name: "model key", secret: MODEL_SECRET.slice(7) },
    ]);
    await useThem();
  });

  after(async () => {
    await kit?.stop();
    await upstream?.stop();
    model?.close();
  });

  const useThem = async () => {
    const { fetch } = await kit.door();
    for (let i = 0; i < 4; i += 1) {
      const answer = await fetch(`https://${kit.doorAddress()}/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${session.token}` },
        body: JSON.stringify({ model: "m", max_tokens: 1, messages: [], stream: true }),
      });
      answers.push(JSON.stringify([...answer.headers]), await answer.text());
    }
    upstream.misbehave = (rpc, request, response) => {
      if (rpc.method !== "tools/call") return false;
      response.writeHead(500).end(JSON.stringify(request.headers));
      return true;
    };
    const mcp = await kit.mcp();
    const metadata = { "ganglion-session-token": session.token };
    const request = {
      mcpServerName: "demo",
      name: "one",
      inputJson: Buffer.from("{}"),
      key: newId("sevt"),
      timeout: undefined,
      acknowledgedKeys: [],
    };
    const { call } = await mcp.callTool(request, { metadata });
    answers.push(
      ...(call?.content ?? []).map(({ data }) => (data?.$case === "json" ? data.value.toString() : "")),
    );
    // Vault goes away in the middle of things, with the log at its most talkative.
    await kit.vault.restart("SIGKILL");
    const next = { ...request, key: newId("sevt") };
    await mcp
      .callTool(next, { metadata })
      .catch((error) => answers.push(JSON.stringify(error), String(error.stack)));
  };

  it("were really used, and the search finds them where they may be", () => {
    assert.equal(upstream.of("tools/call")[0]?.headers.authorization, `Bearer ${MCP_SECRET}`);
    assert.equal(answers.join().match(/\[REDACTED:vcrd_/g)?.length, 2);
    const planted = index.find(
      Buffer.from(`x ${MCP_SECRET} y ${Buffer.from(MODEL_SECRET).toString("base64")}`),
    );
    assert.equal(planted.length, 2);
    if (process.getuid?.() === 0) {
      const { findings } = scanProcess(kit.service.process.pid as number, index);
      assert.ok(
        findings.some(({ surface }) => surface === "memory"),
        "the proxy itself had them in memory",
      );
    }
  });

  it("are in no answer and no error [L5] [L8]", () => {
    for (const answer of answers) assert.deepEqual(index.find(Buffer.from(answer)), []);
  });

  it("are in no log line, at level debug [A117]", () => {
    const output = kit.service.output();
    assert.ok(output.length > 1000);
    assert.deepEqual(index.find(Buffer.from(output)), []);
    assert.ok(!output.includes(session.token), "nor is the session token");
  });

  it("are in neither environment nor arguments of the process [A079]", () => {
    const { findings } = scanProcess(kit.service.process.pid as number, index);
    assert.deepEqual(
      findings.filter(({ surface }) => surface !== "memory"),
      [],
    );
  });

  it("are in no row of the database, nor is the session token [L5]", async () => {
    const tables = await kit.sql(
      "ganglion_owner",
      "SELECT tablename FROM pg_tables WHERE schemaname = 'proxy'",
    );
    assert.ok(tables.length > 10);
    for (const { tablename } of tables) {
      const rows = await kit.sql("ganglion_owner", `SELECT t::text AS row FROM proxy.${tablename} t`);
      const text = rows.map(({ row }) => row).join("\n");
      assert.deepEqual(index.find(Buffer.from(text)), [], tablename);
      assert.ok(!text.includes(session.token), tablename);
    }
  });

  it("are in no file of Vault as they are, audit log included", () => {
    const { findings, files } = scanFiles(kit.vault.folder, index);
    assert.ok(files > 3);
    assert.deepEqual(findings, []);
  });

  it("nothing but mcp-proxy's own requests name the session at Vault", async () => {
    const { readFileSync } = await import("node:fs");
    const lines = readFileSync(kit.vault.auditFile, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const reads = lines.filter(
      ({ type, request }) =>
        type === "request" && request.operation === "read" && /^ganglion\/data\/vaults\//.test(request.path),
    );
    assert.ok(reads.length >= 2);
    const records = await kit.records(session.sessionId);
    const named = new Set(records.map(({ vaultRequestId }) => vaultRequestId));
    for (const { request, auth } of reads) {
      assert.ok(named.has(request.id), "each read of a credential is named by a dispatch");
      assert.equal(auth.metadata.session_id, session.sessionId);
    }
  });
});
