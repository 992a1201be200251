import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";

describe("MCP upstream", () => {
  let upstream: TestMcpUpstream;

  before(async () => {
    upstream = await startMcpUpstream();
  });
  after(() => upstream.stop());

  const open = async (authorization: string | undefined) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const client = new Client({ name: "contract-test", version: "0" });
    const transport = new StreamableHTTPClientTransport(new URL(upstream.url), { requestInit: { headers } });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    return client;
  };

  it("serves the tools of the real server to the official client with the token", async () => {
    const client = await open(`Bearer ${upstream.token}`);
    const { tools } = await client.listTools();
    assert.ok(["echo", "get-sum", "get-env"].every((name) => tools.some((tool) => tool.name === name)));
    const sum = await client.callTool({ name: "get-sum", arguments: { a: 38, b: 60.5 } });
    assert.match(JSON.stringify(sum.content), /98\.5/);
    await client.close();
    const call = await upstream.journal.waitFor(({ kind, tool }) => kind === "call" && tool === "get-sum");
    assert.deepEqual(call.arguments, { a: 38, b: 60.5 });
  });

  it("refuses a missing or wrong token with 401 before the server behind hears of it", async () => {
    const { token } = upstream;
    for (const value of [undefined, "Bearer wrong", `Bearer ${token}x`, `Basic ${token}`, token]) {
      await assert.rejects(open(value), /401|Unauthorized|token/i);
    }
    const answer = await fetch(upstream.url, { method: "POST", body: "{}" });
    assert.equal(answer.status, 401);
    assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/);
  });

  it("keeps the token from the server behind, from the journal and from its output", async () => {
    const client = await open(`Bearer ${upstream.token}`);
    const env = await client.callTool({ name: "get-env", arguments: {} });
    await client.close();
    const text = JSON.stringify(env.content);
    assert.ok(text.includes("everything.sock"), "the tool answered at all");
    const seen = text + JSON.stringify(await upstream.journal.entries()) + upstream.output();
    assert.ok(!seen.includes(upstream.token));
    assert.ok(!readFileSync(`/proc/${upstream.process.pid}/environ`, "latin1").includes(upstream.token));
    assert.ok(!readFileSync(`/proc/${upstream.process.pid}/cmdline`, "latin1").includes(upstream.token));
  });

  it("ends as a whole when its server dies, and when its parent is killed", async () => {
    const whole = await startMcpUpstream();
    process.kill(Number(whole.listening.server_pid), "SIGKILL");
    const [code] = await once(whole.process, "exit");
    assert.equal(code, 1);

    const kit = new URL("../../kit/mcp-upstream.ts", import.meta.url).href;
    const program = `const { startMcpUpstream } = await import('${kit}');
      const { listening } = await startMcpUpstream(); console.log(listening.addr);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [addr] = await once(createInterface({ input: parent.stdout }), "line");
    const socket = connect(Number(String(addr).split(":")[1]), "127.0.0.1");
    await once(socket, "connect");
    parent.kill("SIGKILL");
    await once(socket, "close");
  });
});
