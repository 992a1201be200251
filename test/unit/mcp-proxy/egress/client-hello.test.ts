import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect } from "node:tls";
import { readClientHello } from "../../../../services/mcp-proxy/egress/client-hello.ts";
import { namesHost } from "../../../../services/mcp-proxy/egress/names-host.ts";

/** The greeting that Node sends. */
async function greeting(servername: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ host: "127.0.0.1", port, servername, ALPNProtocols: ["h2", "http/1.1"] });
  client.on("error", () => {});
  const [socket] = await once(server, "connection");
  const [bytes] = await once(socket, "data");
  client.destroy();
  server.close();
  return bytes;
}

describe("the greeting of a TLS connection [A001]", () => {
  let hello: Buffer;
  before(async () => {
    hello = await greeting("api.example.test");
  });

  it("names its host", () => {
    assert.deepEqual(readClientHello(hello), { kind: "hello", serverName: "api.example.test" });
  });

  it("may come without a name", async () => {
    assert.deepEqual(readClientHello(await greeting("")), { kind: "hello", serverName: undefined });
  });

  it("is not read before it is whole, wherever it ends", () => {
    for (let end = 0; end < hello.length; end += 1) {
      assert.deepEqual(readClientHello(hello.subarray(0, end)), { kind: "partial" }, String(end));
    }
  });

  const inRecords = (size: number): Buffer => {
    const body = hello.subarray(5);
    const parts = Array.from({ length: Math.ceil(body.length / size) }, (_, i) => {
      const part = body.subarray(i * size, (i + 1) * size);
      return Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
    });
    return Buffer.concat(parts);
  };

  it("may come in several records, but not in many", () => {
    const body = hello.length - 5;
    for (const records of [2, 3, 16]) {
      const read = readClientHello(inRecords(Math.ceil(body / records)));
      assert.deepEqual(read, { kind: "hello", serverName: "api.example.test" }, String(records));
    }
    for (const size of [1, 3, Math.floor(body / 17)]) {
      assert.deepEqual(readClientHello(inRecords(size)), { kind: "invalid" }, String(size));
    }
  });

  it("is refused when it is something else, and never read beyond its ends", () => {
    for (const text of ["GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\u0016\u0002\u0000"]) {
      assert.deepEqual(readClientHello(Buffer.from(text, "latin1")), { kind: "invalid" });
    }
    for (let at = 0; at < hello.length; at += 1) {
      for (const value of [0, 1, 0xff]) {
        const changed = Buffer.from(hello);
        changed[at] = value;
        assert.ok(["hello", "partial", "invalid"].includes(readClientHello(changed).kind));
      }
    }
  });

  it("with two names is refused", () => {
    const at = hello.indexOf("api.example.test");
    const changed = Buffer.from(hello);
    // The list's length says that another name follows.
    changed.writeUInt16BE(12, at - 2);
    assert.deepEqual(readClientHello(changed), { kind: "invalid" });
  });

  it("fits a name and nothing else; an address has none", () => {
    assert.ok(namesHost("a.test", "a.test"));
    assert.ok(namesHost(undefined, "192.0.2.1"));
    for (const [name, host] of [
      [undefined, "a.test"],
      ["b.test", "a.test"],
      ["a.test.", "a.test"],
      ["a.test", "192.0.2.1"],
      ["192.0.2.1", "192.0.2.1"],
    ] as const) {
      assert.ok(!namesHost(name, host), `${name} ${host}`);
    }
  });
});
