import assert from "node:assert/strict";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { mcpFetch } from "../../../services/mcp-proxy/upstream/mcp-fetch.ts";
import { currentOperation, type McpOperation } from "../../../services/mcp-proxy/upstream/mcp-operation.ts";
import { unseenTraffic } from "../../kit/unseen-traffic.ts";

describe("what an operation remembers of its answers", () => {
  it("is not more for a server that ends its stream again and again, to be asked to go on [M25]", async () => {
    let answers = 0;
    const request = async () => {
      answers += 1;
      const event = `id: ${answers}\ndata: ${"x".repeat(10_000)}\n\n`;
      const headers = { "content-type": "text/event-stream" };
      return { statusCode: 200, headers, body: Readable.from([Buffer.from(event)]) };
    };
    const operation = {
      dispatcher: { request } as unknown as Dispatcher,
      ...{ met: () => {}, onStreamEnd: () => {}, secret: undefined, credentialId: "" },
      ...{ signal: new AbortController().signal, isOver: false, mayHaveSent: false },
      ...{ requestBytes: 0, responseBytes: 0, redactions: 0, status: 0, step: 0 },
      heard: [] as Buffer[][],
      traffic: unseenTraffic(),
    } satisfies McpOperation;
    await currentOperation.run(operation, async () => {
      for (let i = 0; i < 20; i += 1) {
        const headers = { "last-event-id": String(i) };
        await (await mcpFetch("http://a.test/", { method: "GET", headers })).text();
      }
    });
    const bytes = operation.heard.flat().reduce((sum, piece) => sum + piece.length, 0);
    assert.equal(answers, 20);
    assert.ok(bytes < 30_000, `${bytes} bytes`);
    assert.ok(operation.heard.at(-1)?.toString().startsWith("id: 20\n"), "the newest is there");
  });
});
