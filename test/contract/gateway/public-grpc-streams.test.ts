import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { type Client, type ServiceError, status } from "@grpc/grpc-js";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { clientStream, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import {
  type PutPayloadRequest,
  type PutPayloadRequest_Header,
  SessionServiceService,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type GatewayUnderTest, implementSome, playApiKeys, startGateway } from "./gateway-kit.ts";
import { bearer, dial, getSession, watch } from "./public-client.ts";

const KEY = "gk-test-0123456789";

describe("streams through the public gRPC address", () => {
  let mesh: GatewayUnderTest;
  const uploads: string[] = [];
  let produced = 0;
  let cancelled = Promise.withResolvers<void>();

  before(async () => {
    const session = implementSome(SessionServiceService, {
      getSession: unary(async () => {
        throw new GanglionError({ code: "NOT_FOUND", reason: "SESSION_NOT_FOUND", message: "there is none" });
      }),
      putPayload: clientStream(async (requests: AsyncIterable<PutPayloadRequest>, ctx) => {
        const hash = createHash("sha256");
        let header: PutPayloadRequest_Header | undefined;
        for await (const { message } of requests) {
          if (message?.$case === "header") header = message.value;
          else if (message) hash.update(message.value);
          if (header?.payloadId === "refused") {
            throw new GanglionError({
              code: "RESOURCE_EXHAUSTED",
              reason: "TOO_LARGE",
              message: "too large",
            });
          }
        }
        uploads.push(`${header?.payloadId} ${ctx.principal.workspaceId} ${hash.digest("hex")}`);
        return { isDuplicate: false };
      }),
      watchEvents: serverStream(async function* (request, ctx): AsyncGenerator<WatchEventsResponse> {
        ctx.signal.addEventListener("abort", () => cancelled.resolve());
        if (request.sessionId === "sesn_quiet") {
          yield { position: 0n, message: { $case: "checkpoint", value: {} } };
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return;
        }
        for (let position = 1n; position <= 1000n; position += 1n) {
          produced += 1;
          const event = {
            $case: "event" as const,
            value: Event.fromPartial({
              id: `sevt_${position}`,
              position,
              type: "user.message",
              traceparent: "x".repeat(64 << 10),
            }),
          };
          yield { position, message: event };
        }
      }),
    });
    mesh = await startGateway([session, playApiKeys(KEY)]);
  });
  after(() => mesh?.stop());

  it("reads a stream only as fast as its reader does, and ends it with the reader [B126]", async () => {
    produced = 0;
    cancelled = Promise.withResolvers();
    const client = await dial(mesh);
    const stream = watch(client, bearer(KEY));
    stream.on("error", () => {});
    const positions: bigint[] = [];
    for await (const message of stream) {
      positions.push(message.position);
      if (positions.length === 3) break;
    }
    assert.deepEqual(positions, [1n, 2n, 3n]);
    const soFar = produced;
    assert.ok(soFar < 500, `${soFar} messages of 64 KiB were taken from the service for a reader of three`);
    stream.cancel();
    await cancelled.promise;
  });

  it("bounds the streams that one key has open, on both doors together", async () => {
    const client = await dial(mesh);
    const open = () => {
      const stream = watch(client, bearer(KEY), "sesn_quiet");
      const first = Promise.withResolvers<ServiceError | undefined>();
      stream.on("error", (error) => first.resolve(error as ServiceError));
      stream.once("data", () => first.resolve(undefined));
      return { stream, first: first.promise };
    };
    const streams = Array.from({ length: 500 }, open);
    for (const { first } of streams) assert.equal(await first, undefined);
    const refused = await open().first;
    assert.equal(refused?.code, status.RESOURCE_EXHAUSTED, refused?.message);
    const overRest = async () => {
      const headers = { authorization: `Bearer ${KEY}` };
      return (await fetch(`${mesh.rest}/v1/sessions/sesn_1/events/stream`, { headers })).status;
    };
    assert.equal(await overRest(), 429);
    const upload = await putPayload(client, "one-more", Buffer.from("x"));
    assert.equal(upload?.code, status.RESOURCE_EXHAUSTED, upload?.message);
    assert.deepEqual(uploads, []);
    assert.equal((await getSession(client, bearer(KEY))).code, status.NOT_FOUND);
    cancelled = Promise.withResolvers();
    streams.pop()?.stream.cancel();
    await cancelled.promise;
    // There is room again; there is no such session.
    assert.equal(await overRest(), 404);
    const again = open();
    assert.equal(await again.first, undefined);
    for (const { stream } of [...streams, again]) stream.cancel();
  }).timeout(60_000);

  const putPayload = (client: Client, payloadId: string, content: Buffer) => {
    const { path, requestSerialize, responseDeserialize } = SessionServiceService.putPayload;
    return new Promise<ServiceError | undefined>((resolve) => {
      const call = client.makeClientStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        bearer(KEY),
        {},
        (error) => resolve(error ?? undefined),
      );
      call.on("error", () => {});
      const sha256 = createHash("sha256").update(content).digest();
      const facts = { sizeBytes: BigInt(content.length), sha256, contentType: "image/png", epoch: undefined };
      call.write({ message: { $case: "header", value: { sessionId: "sesn_1", payloadId, ...facts } } });
      for (let at = 0; at < content.length; at += 1 << 20)
        call.write({ message: { $case: "data", value: content.subarray(at, at + (1 << 20)) } });
      call.end();
    });
  };

  it("passes a payload of 32 MiB on as it comes, and a refusal in the middle of it back", async () => {
    const client = await dial(mesh);
    const content = randomBytes(32 << 20);
    assert.equal(await putPayload(client, "large", content), undefined);
    const digest = createHash("sha256").update(content).digest("hex");
    assert.deepEqual(uploads, [`large wrkspc_a ${digest}`]);
    const error = await putPayload(client, "refused", content);
    assert.equal(error?.code, status.RESOURCE_EXHAUSTED, error?.message);
    assert.equal((await getSession(client, bearer(KEY))).code, status.NOT_FOUND);
  }).timeout(60_000);

  it("delivers a whole stream in order [B127]", async () => {
    const client = await dial(mesh);
    const stream = watch(client, bearer(KEY));
    let last = 0n;
    for await (const message of stream) {
      const { position } = message;
      assert.equal(position, last + 1n);
      last = position;
    }
    assert.equal(last, 1000n);
  }).timeout(60_000);

  it("survives callers that leave at any moment or send nonsense [B142]", async () => {
    const folder = await mesh.ca.directory("gateway");
    const session = connect(`https://${mesh.grpc.replace("127.0.0.1", "localhost")}`, {
      ca: readFileSync(join(folder, "ca.pem")),
    });
    const gone: Promise<unknown>[] = [];
    const paths = [
      SessionServiceService.getSession.path,
      SessionServiceService.watchEvents.path,
      "/",
      "/nonsense/x",
    ];
    for (let i = 0; i < 200; i += 1) {
      const headers = {
        ":method": i % 7 === 0 ? "GET" : "POST",
        ":path": paths[i % paths.length],
        "content-type": i % 11 === 0 ? "text/plain" : "application/grpc",
        ...(i % 5 === 0 ? {} : { authorization: `Bearer ${KEY}` }),
        ...(i % 13 === 0 ? { "grpc-timeout": "nonsense" } : {}),
      };
      const stream = session.request(headers, { endStream: false });
      stream.on("error", () => {});
      stream.resume();
      gone.push(once(stream, "close"));
      stream.write(Buffer.from([0, 0, 0, 0, i % 3]));
      if (i % 2 === 0) setImmediate(() => stream.close(8));
      else if (i % 3 === 0) stream.destroy();
      else setTimeout(() => stream.close(8), i % 17);
    }
    await Promise.all(gone);
    session.close();
    assert.equal((await getSession(await dial(mesh), bearer(KEY))).code, status.NOT_FOUND);
    assert.equal(mesh.gateway.process.exitCode, null);
    assert.ok(!mesh.gateway.output().includes("failed by a bug"), mesh.gateway.output().slice(-2000));
  }).timeout(30_000);
});
