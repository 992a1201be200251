import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Client, status } from "@grpc/grpc-js";
import { channelOptions } from "../../../services/common/grpc/channel-options.ts";
import { serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { createChannelCredentials } from "../../../services/common/tls/channel-credentials.ts";
import { createMeshHttpsServer, peerOf } from "../../../services/common/tls/https-server.ts";
import { createMeshFetch } from "../../../services/common/tls/mesh-fetch.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Fixture, WATCH, watchMessage } from "./fixture.ts";

const REQUEST = { sessionId: "sesn_1" };

describe("connections", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

  it("[B130] watchers that vanish without a word are noticed by pings and leave nothing behind", async () => {
    let open = 0;
    const server = await fixture.serve(
      {
        watchEvents: serverStream(async function* (_request, ctx) {
          open += 1;
          try {
            yield watchMessage(1);
            await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          } finally {
            open -= 1;
          }
        }),
      },
      { keepaliveMs: 200, keepaliveTimeoutMs: 200 },
    );
    const [host = "", port] = server.address.split(":");
    const sockets: Socket[] = [];
    const proxy = createServer((near) => {
      const far = connect(Number(port), host);
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) sockets.push(socket.on("error", () => {}));
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const client = await fixture.client(`127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    const tails = Array.from({ length: 30 }, () => client.watchEvents(WATCH));
    await Promise.all(tails.map((tail) => tail.next()));
    assert.equal(open, 30);
    // From here on nothing crosses, and no side is told.
    for (const socket of sockets) socket.unpipe().pause();
    while (open > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal((await server.metrics.serverActive.get()).values[0]?.value, 0);
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });

  it("what many callers send over one connection does not wait for a window of 64 KiB", async () => {
    const server = await fixture.serve({});
    const { ca, cert, key } = (await fixture.ca.bundle("operator")).material();
    const verified = { ca, cert, key, checkServerIdentity: () => undefined };
    const connection = connectHttp2(`https://${server.address}`, verified);
    await once(connection, "connect");
    // Answers to pings overtake other frames; what the server said first is here when a second one is answered.
    for (let n = 0; n < 2; n++) {
      await new Promise<void>((resolve, reject) => {
        connection.ping((error) => (error ? reject(error) : resolve()));
      });
    }
    assert.equal(connection.state.remoteWindowSize, 4 << 20);
    connection.destroy();
  });

  it("[A102] a message over the limit is refused, also when it is small before it is unpacked", async () => {
    let runs = 0;
    const server = await fixture.serve({
      getSession: unary(async () => {
        runs += 1;
        return { session: undefined };
      }),
    });
    const bundle = await fixture.ca.bundle("operator");
    for (const [bytes, compression] of [
      [4 * 1024 * 1024 + 1, 0],
      [64 * 1024 * 1024, 2],
    ] as const) {
      const raw = new Client(server.address, createChannelCredentials(bundle, "session"), {
        "grpc.max_send_message_length": -1,
        "grpc.default_compression_algorithm": compression,
        "grpc.ssl_target_name_override": "session.ganglion.local",
      });
      const error = await new Promise<{ code?: number } | null>((resolve) => {
        const same = (message: Buffer) => message;
        raw.makeUnaryRequest(SessionServiceService.getSession.path, same, same, Buffer.alloc(bytes), resolve);
      });
      assert.equal(error?.code, status.RESOURCE_EXHAUSTED);
      raw.close();
    }
    assert.equal(runs, 0);
  });

  it("[B135] a client finds a server that was restarted, without help", async () => {
    const fakes = { getSession: unary(async () => ({ session: undefined })) };
    const first = await fixture.serve(fakes);
    const client = await fixture.client(first.address);
    await client.getSession(REQUEST);
    first.force();
    await first.drain();
    const waiting = client.getSession(REQUEST, { waitForReady: true, timeoutMs: 10_000 });
    await fixture.serve(fakes, { listen: first.address });
    await waiting;
    await client.getSession(REQUEST);
  });

  it("[B135] calls that do not wait fail at once while nobody is there", async () => {
    const server = await fixture.serve({});
    const client = await fixture.client(server.address, "operator", "session", { image: null });
    server.force();
    await server.drain();
    const startedAt = performance.now();
    await assert.rejects(client.getSession(REQUEST), { code: "UNAVAILABLE" });
    assert.ok(performance.now() - startedAt < 5000);
  });

  it("[B136] our pings suit a server that allows one in five minutes, and none without calls", () => {
    const options = channelOptions(SessionServiceService, "session", {});
    assert.ok((options["grpc.keepalive_time_ms"] ?? 0) >= 300_000);
    assert.equal(options["grpc.keepalive_permit_without_calls"], 0);
  });

  it("only methods that the contract calls idempotent are retried", async () => {
    const options = channelOptions(SessionServiceService, "session", {});
    const config = JSON.parse(options["grpc.service_config"] as string) as {
      methodConfig: { name: { method: string }[] }[];
    };
    const retried = config.methodConfig.flatMap(({ name }) => name.map(({ method }) => method));
    assert.ok(retried.includes("GetSession"));
    assert.ok(!retried.includes("WatchEvents") && !retried.includes("PublishPreviews"));
  });

  it("calls spread over all addresses", async () => {
    const seen = new Set<string>();
    const addresses = await Promise.all(
      ["a", "b"].map(async (name) => {
        const server = await fixture.serve({
          getSession: unary(async () => {
            seen.add(name);
            return { session: undefined };
          }),
        });
        return server.address;
      }),
    );
    const client = await fixture.client(`ipv4:${addresses.join(",")}`);
    while (seen.size < 2) await client.getSession(REQUEST);
  });

  describe("over HTTPS", () => {
    const serve = async (service: string) => {
      const bundle = await fixture.ca.bundle(service);
      const server = createMeshHttpsServer(bundle, (request, response) => {
        if (request.url === "/moved") response.writeHead(307, { location: "/" }).end();
        else if (request.url === "/nothing") response.writeHead(204, { "x-two": ["a", "b"] }).end();
        else if (request.url === "/half") response.write("half");
        else if (request.url === "/echo") request.pipe(response);
        else response.end(JSON.stringify(peerOf(request.socket as TLSSocket) ?? null));
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return { server, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/` };
    };

    it("the server knows its caller and the caller its server", async () => {
      const { server, url } = await serve("mcp-proxy");
      const tls = await fixture.ca.bundle("harness");
      const door = createMeshFetch(tls, "mcp-proxy");
      const peer = (await (await door.fetch(url)).json()) as { service: string };
      assert.equal(peer.service, "harness");
      assert.equal((await door.fetch(`${url}moved`)).status, 307);
      const wrong = createMeshFetch(tls, "session");
      await assert.rejects(wrong.fetch(url));
      await Promise.all([door.close(), wrong.close()]);
      server.closeAllConnections();
      server.close();
    });

    it("a fetch sends what it is given, and an answer may be empty, left, or given up", async () => {
      const { server, url } = await serve("mcp-proxy");
      const door = createMeshFetch(await fixture.ca.bundle("harness"), "mcp-proxy");
      const post = (path: string, more: RequestInit = {}) =>
        door.fetch(new URL(path, url), { method: "POST", ...more });
      assert.equal(await (await post("echo", { body: Buffer.from("h\u00e9") })).text(), "h\u00e9");
      const nothing = await post("nothing");
      assert.deepEqual([nothing.status, nothing.body, nothing.headers.get("x-two")], [204, null, "a, b"]);

      const reader = (await post("half")).body?.getReader();
      assert.equal(new TextDecoder().decode((await reader?.read())?.value), "half");
      await reader?.cancel();

      const abort = new AbortController();
      const unread = await post("half", { signal: abort.signal });
      const half = await post("half", { signal: abort.signal });
      const reading = half.text();
      abort.abort();
      await assert.rejects(reading);
      await assert.rejects(unread.text());
      await assert.rejects(post("echo", { signal: abort.signal }));
      await door.close();
      server.closeAllConnections();
      server.close();
    });

    it("[A108] a caller without a certificate of the mesh is not heard", async () => {
      const { server, url } = await serve("mcp-proxy");
      let heard = 0;
      server.on("request", () => {
        heard += 1;
      });
      const { request } = await import("node:https");
      const ended = await new Promise<string>((resolve) => {
        const call = request(url, { ca: fixture.ca.authority.certPem, checkServerIdentity: () => undefined });
        call.on("response", () => resolve("answered")).on("error", (error) => resolve(error.message));
        call.end();
      });
      assert.notEqual(ended, "answered");
      assert.equal(heard, 0);
      server.closeAllConnections();
      server.close();
    });

    it("new connections use a renewed certificate on both sides", async () => {
      const directory = await fixture.ca.directory("harness");
      const { TlsBundle } = await import("../../../services/common/tls/tls-bundle.ts");
      const tls = new TlsBundle(directory);
      const { server, url } = await serve("mcp-proxy");
      const door = createMeshFetch(tls, "mcp-proxy");
      const instance = async () => ((await (await door.fetch(url)).json()) as { instance: string }).instance;
      assert.equal(await instance(), "harness-1");
      await fixture.ca.renew(directory, "harness", "harness-9");
      assert.equal(tls.reload(), true);
      assert.equal(await instance(), "harness-9");
      await door.close();
      tls.close();
      server.closeAllConnections();
      server.close();
    });
  });
});
