import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { channelOptions } from "../../../services/common/grpc/channel-options.ts";
import { unary } from "../../../services/common/grpc/handlers.ts";
import { createMeshHttpsServer, peerOf } from "../../../services/common/tls/https-server.ts";
import { createMeshFetch } from "../../../services/common/tls/mesh-fetch.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Fixture } from "./fixture.ts";

const REQUEST = { sessionId: "sesn_1" };

describe("connections", () => {
  let fixture: Fixture;
  before(async () => {
    fixture = await Fixture.create();
  });
  after(() => fixture.stop());

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
