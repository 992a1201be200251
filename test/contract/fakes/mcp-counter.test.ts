import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startMcpCounter, type TestMcpCounter } from "../../kit/mcp-counter.ts";

describe("MCP counter", () => {
  let counter: TestMcpCounter;

  before(async () => {
    counter = await startMcpCounter();
  });
  after(() => counter.stop());

  const open = async (token: string) => {
    const client = new Client({ name: "contract-test", version: "0" });
    const headers = { authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(counter.url), { requestInit: { headers } });
    await client.connect(transport as Parameters<Client["connect"]>[0]);
    return client;
  };

  it("counts what the official client calls, and says so to who may know", async () => {
    const client = await open(counter.token);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name, annotations }) => [name, annotations?.idempotentHint]),
      [["count", false]],
    );
    for (const key of ["a", "b", "a"]) await client.callTool({ name: "count", arguments: { key } });
    const { content } = await client.callTool({ name: "count", arguments: { key: "a", wait_ms: 1 } });
    assert.deepEqual(content, [{ type: "text", text: "3" }]);
    assert.deepEqual(await counter.counts(), { a: 3, b: 1 });
    await client.close();
  });

  it("answers nobody without its token", async () => {
    await assert.rejects(open("wrong"));
    const counts = await fetch(counter.url.replace("/mcp", "/counts"), {
      headers: { authorization: `Bearer ${counter.token}` },
    });
    assert.equal(counts.status, 404);
    assert.ok(!counter.output().includes(counter.token));
  });
});
