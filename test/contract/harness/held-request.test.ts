import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createMeshHttpsServer } from "../../../services/common/tls/https-server.ts";
import { createMeshFetch, type MeshFetch } from "../../../services/common/tls/mesh-fetch.ts";
import { createAnthropicModel } from "../../../services/harness/model/anthropic-model.ts";
import type { Model } from "../../../services/harness/ports/model.ts";
import { TestCa } from "../../kit/ca.ts";
import { streamed, text } from "./played-model.ts";

/** What the door sees of one request, as far as it has come. */
interface Come {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly chunks: Buffer[];
  length: number;
}

const isInterrupted = ({ facts }: { facts?: { reason: string } }) => facts?.reason === "INTERRUPTED";

describe("a request that is brought to the door before it may be sent", () => {
  let ca: TestCa;
  let server: Server;
  let door: MeshFetch;
  let model: Model;
  let address = "";
  let come: Come[] = [];
  let look = () => {};
  /** Resolves when the condition holds of what has come. */
  const until = async (isSo: () => boolean) => {
    while (!isSo())
      await new Promise<void>((resolve) => {
        look = resolve;
      });
  };
  const answer = ({ response, request }: Come) =>
    streamed("end_turn", text("Done."))(response, { url: request.url ?? "" } as never);

  before(async () => {
    ca = await TestCa.create();
    server = createMeshHttpsServer(await ca.bundle("mcp-proxy"), (request, response) => {
      if (request.url === "/nothing") return void response.writeHead(204).end();
      const one: Come = { request, response, chunks: [], length: 0 };
      come.push(one);
      request.on("data", (chunk: Buffer) => {
        one.chunks.push(chunk);
        one.length += chunk.length;
        look();
      });
      for (const event of ["end", "error", "close"]) request.on(event, () => look());
      look();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    door = createMeshFetch(await ca.bundle("harness"), "mcp-proxy");
    const { port } = server.address() as AddressInfo;
    address = `https://127.0.0.1:${port}`;
    model = createAnthropicModel({ baseUrl: address, fetch: door.fetch });
  });
  afterEach(() => {
    come = [];
  });
  after(async () => {
    await door.close();
    server.closeAllConnections();
    server.close();
    ca.remove();
  });

  const request = (words: string, signal = new AbortController().signal) => ({
    body: Buffer.from(JSON.stringify({ model: "claude-test", said: words })),
    token: "gst_token",
    traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`,
    listener: { onBlockStart: () => {}, onText: () => {} },
    signal,
  });

  const open = (asked: ReturnType<typeof request>, token = Promise.resolve(asked.token)) =>
    model.open?.({ ...asked, token });

  for (const size of [20, 1_000_000]) {
    it(`is none before its end, which comes when the model is asked (${size} characters)`, async () => {
      const asked = request("ü".repeat(size));
      const opened = open(asked);
      await until(() => come[0]?.length === asked.body.length - 1);
      const [held] = come as [Come];
      assert.equal(held.request.complete, false);
      assert.equal(held.request.headers.authorization, "Bearer gst_token");
      assert.equal(held.request.headers.traceparent, asked.traceparent);
      const answered = model.ask({ ...asked, opened });
      await until(() => held.request.complete);
      assert.ok(Buffer.concat(held.chunks).equals(asked.body));
      await answer(held);
      assert.equal((await answered).stopReason, "end_turn");
      assert.equal(come.length, 1);
    });
  }

  it("is none at all when it is given up", async () => {
    const asked = request("no");
    const opened = open(asked);
    await until(() => come[0]?.length === asked.body.length - 1);
    opened?.cancel();
    await until(() => come[0]?.request.errored != null);
    assert.equal(come[0]?.request.complete, false);
  });

  it("is not even begun when it is given up at once", async () => {
    open(request("no"))?.cancel();
    const answered = model.ask(request("yes"));
    await until(() => come[0]?.request.complete === true);
    await answer(come[0] as Come);
    await answered;
    assert.equal(come.length, 1);
  });

  it("waits for its token, and is asked without that when it never comes or is late", async () => {
    const asked = request("who");
    const token = Promise.withResolvers<string>();
    const late = open(asked, token.promise);
    const never = open(asked, Promise.reject(new Error("no token")));
    for (const [n, opened] of [late, never].entries()) {
      const answered = model.ask({ ...asked, opened });
      await until(() => come[n]?.request.complete === true);
      await answer(come[n] as Come);
      assert.equal((await answered).stopReason, "end_turn");
    }
    token.resolve(asked.token);
    await door.fetch(new URL("/nothing", address));
    assert.equal(come.length, 2);
  });

  it("is asked all the same, whole and once, when the door gave it up meanwhile", async () => {
    const asked = request("again");
    const opened = open(asked);
    await until(() => come[0]?.length === asked.body.length - 1);
    come[0]?.request.socket.destroy();
    await until(() => come[0]?.request.errored != null);
    // Whoever has this answer has seen the end of a connection that was closed before.
    await door.fetch(new URL("/nothing", address));
    const answered = model.ask({ ...asked, opened });
    await until(() => come[1]?.request.complete === true);
    assert.deepEqual(Buffer.concat(come[1]?.chunks ?? []), asked.body);
    await answer(come[1] as Come);
    assert.equal((await answered).stopReason, "end_turn");
  });

  it("is not sent when there is an interrupt before its end, and is cut by one after it", async () => {
    const first = new AbortController();
    const asked = request("stop", first.signal);
    const opened = open(asked);
    await until(() => come[0]?.length === asked.body.length - 1);
    first.abort();
    await assert.rejects(model.ask({ ...asked, opened }), isInterrupted);
    await until(() => come[0]?.request.errored != null);
    assert.equal(come[0]?.request.complete, false);

    const second = new AbortController();
    const later = request("stop later", second.signal);
    const held = open(later);
    await until(() => come[1]?.length === later.body.length - 1);
    const answered = model.ask({ ...later, opened: held });
    await until(() => come[1]?.request.complete === true);
    come[1]?.response.writeHead(200, { "content-type": "text/event-stream" });
    come[1]?.response.flushHeaders();
    second.abort();
    await assert.rejects(answered, isInterrupted);
  });
});
