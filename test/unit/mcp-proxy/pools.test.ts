import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import { createPools, type UpstreamPools } from "../../../services/mcp-proxy/upstream/pools.ts";

const ADDRESS = { address: "127.0.0.1", family: 4, class: "loopback" } as const;

describe("connections to an upstream that says more than it should", () => {
  let server: Server;
  let pools: UpstreamPools;
  const sockets: Socket[] = [];

  before(async () => {
    // Answers each request, and on the first connection has a second answer ready that nobody asked for.
    server = createServer((socket) => {
      const isFirst = sockets.push(socket) === 1;
      socket.on("error", () => {});
      socket.on("data", () => {
        const answer = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
        socket.write(isFirst ? answer("first") + answer("smuggled") : answer("second"));
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    pools = createPools({ connectMs: 2000, headersMs: 5000, bodyIdleMs: 5000 }, undefined);
  });
  after(async () => {
    await pools.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  const ask = async (credentialKey: string) => {
    const destination = parseDestination(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    assert.ok(destination);
    const pool = pools.get(destination, ADDRESS, credentialKey);
    const { body } = await pool.request({ method: "GET", path: "/", origin: destination.url });
    return body.text();
  };

  it("are not shared between credentials, and one with a surplus is not used again [A029]", async () => {
    assert.equal(await ask("vcrd_a.1"), "first");
    assert.equal(await ask("vcrd_b.1"), "second");
    assert.equal(await ask("vcrd_a.1"), "second");
    assert.equal(await ask("vcrd_a.2"), "second");
    assert.equal(sockets.length, 4, "one for each credential and version, and a new one for the spoiled one");
  });
});
