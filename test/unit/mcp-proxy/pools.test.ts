import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Pool } from "undici";
import { issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import { parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import type { PeerFacts } from "../../../services/mcp-proxy/domain/peer-facts.ts";
import { exchange } from "../../../services/mcp-proxy/upstream/exchange.ts";
import { createPools, type UpstreamPools } from "../../../services/mcp-proxy/upstream/pools.ts";
import { TestCa } from "../../kit/ca.ts";

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

describe("pools of connections", () => {
  it("do not become more and more, however many sets of secrets a session sends", async () => {
    let now = 0;
    const limits = { connectMs: 2000, headersMs: 5000, bodyIdleMs: 5000 };
    const pools = createPools(limits, undefined, { most: 3, now: () => now });
    const destination = parseDestination("http://127.0.0.1:9/") ?? assert.fail();
    const get = (key: string) => pools.get(destination, ADDRESS, key) as Pool;
    const [a, b, c] = [get("a"), get("b"), get("c")];
    now = 15_000;
    get("b");
    get("d");
    assert.deepEqual(
      [a, b, c].map(({ closed }) => closed),
      [true, false, true],
    );
    assert.equal(get("b"), b);
    assert.notEqual(get("a"), a);
    await pools.close();
  });
});

describe("connections to an upstream that speaks HTTP/2", () => {
  it("tell each of the requests that share one what is at its other end", async () => {
    const ca = await TestCa.create();
    const leaf = await issueCertificate(ca.authority, { service: "vault", instance: "upstream" });
    const server = createSecureServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
      response.end(request.httpVersion);
    });
    let connections = 0;
    server.on("secureConnection", () => {
      connections += 1;
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const limits = { connectMs: 2000, headersMs: 5000, bodyIdleMs: 5000 };
    const pools = createPools(limits, ca.authority.certPem);
    try {
      const { port } = server.address() as AddressInfo;
      const destination = parseDestination(`https://localhost:${port}/`);
      assert.ok(destination);
      const spki = new X509Certificate(leaf.certPem).publicKey.export({ format: "der", type: "spki" });
      const expected = { tlsVersion: "TLSv1.3", spkiSha256: createHash("sha256").update(spki).digest("hex") };
      const ask = async () => {
        const met: PeerFacts[] = [];
        const { body } = await exchange(pools.get(destination, ADDRESS, "vcrd_a.1"), {
          ...{ path: "/", method: "GET", headers: {} },
          signal: AbortSignal.timeout(5000),
          met: (peer) => met.push(peer),
        });
        const chunks: Buffer[] = [];
        for await (const chunk of body) chunks.push(chunk);
        assert.equal(Buffer.concat(chunks).toString(), "2.0");
        assert.deepEqual(met, [expected]);
      };
      await ask();
      await Promise.all([ask(), ask()]);
      assert.ok(connections < 3, `${connections} connections for three requests`);
    } finally {
      await pools.close();
      server.close();
      ca.remove();
    }
  });
});
