import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { clientStream, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import { ApiKeyServiceService } from "../../../services/gen/ganglion/agent/v1/api_key_service.ts";
import {
  type GetSessionRequest,
  type PutPayloadRequest,
  type PutPayloadRequest_Header,
  SessionServiceService,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { ErrorInfo } from "../../../services/gen/google/rpc/error_details.ts";
import { Status } from "../../../services/gen/google/rpc/status.ts";
import { type GatewayUnderTest, implementSome, startGateway } from "./gateway-kit.ts";

const KEY = "gk-test-0123456789";

describe("the public gRPC address", () => {
  let mesh: GatewayUnderTest;
  const seen: { role: Role; workspaceId: string | null; keyId: string | null; authorization: boolean }[] = [];
  const uploads: string[] = [];
  let produced = 0;
  let cancelled = Promise.withResolvers<void>();

  before(async () => {
    const session = implementSome(SessionServiceService, {
      getSession: unary(async (request: GetSessionRequest, ctx) => {
        const { role, workspaceId, keyId } = ctx.principal;
        seen.push({ role, workspaceId, keyId, authorization: ctx.metadata.get("authorization").length > 0 });
        if (request.sessionId === "sesn_hang")
          await new Promise((_, reject) => ctx.signal.addEventListener("abort", reject));
        throw new GanglionError({
          code: "NOT_FOUND",
          reason: "SESSION_NOT_FOUND",
          message: "there is no such session: ä%",
          metadata: { session_id: request.sessionId },
        });
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
          const event = { $case: "event" as const, value: bigEvent(position) };
          yield { position, message: event };
        }
      }),
    });
    const keys = implementSome(ApiKeyServiceService, {
      authenticateApiKey: unary(async ({ keySha256 }) => {
        if (!createHash("sha256").update(KEY).digest().equals(keySha256)) {
          throw new GanglionError({
            code: "UNAUTHENTICATED",
            reason: "API_KEY_INVALID",
            message: "no such key",
          });
        }
        const apiKey = {
          id: "apikey_1",
          workspaceId: "wrkspc_a",
          name: "test",
          createTime: undefined,
          revokeTime: undefined,
        };
        return { apiKey };
      }),
    });
    mesh = await startGateway([session, keys]);
  });
  after(() => mesh?.stop());
  beforeEach(() => {
    seen.length = 0;
  });

  const dial = async (certificate?: { service: string; instance: string }): Promise<Client> => {
    const folder = certificate
      ? await mesh.ca.directory(certificate.service, certificate.instance)
      : await mesh.ca.directory("gateway");
    const read = (name: string) => readFileSync(join(folder, name));
    const tls = certificate
      ? credentials.createSsl(read("ca.pem"), read("key.pem"), read("cert.pem"))
      : credentials.createSsl(read("ca.pem"));
    return new Client(mesh.grpc.replace("127.0.0.1", "localhost"), tls);
  };
  const bearer = (key: string): Metadata => {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${key}`);
    return metadata;
  };
  const getSession = (
    client: Client,
    metadata = new Metadata(),
    sessionId = "sesn_1",
    deadlineMs = 10_000,
  ) => {
    const { path, requestSerialize, responseDeserialize } = SessionServiceService.getSession;
    return new Promise<ServiceError>((resolve) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        { sessionId },
        metadata,
        { deadline: Date.now() + deadlineMs },
        (error) => resolve(error as ServiceError),
      );
    });
  };

  it("tells the service who is behind it and keeps the API key to itself", async () => {
    const error = await getSession(await dial(), bearer(KEY));
    assert.equal(error.code, status.NOT_FOUND, error.message);
    assert.deepEqual(seen, [
      { role: Role.ROLE_CLIENT, workspaceId: "wrkspc_a", keyId: "apikey_1", authorization: false },
    ]);
  });

  it("passes status, message and details on as they are", async () => {
    const error = await getSession(await dial(), bearer(KEY));
    assert.equal(error.details, "there is no such session: ä%");
    const [bytes] = error.metadata.get("grpc-status-details-bin");
    const [info] = Status.decode(bytes as Buffer).details;
    const { reason, domain, metadata } = ErrorInfo.decode(info?.value as Buffer);
    assert.deepEqual(
      { reason, domain, metadata: { ...metadata } },
      { reason: "SESSION_NOT_FOUND", domain: "ganglion.session", metadata: { session_id: "sesn_1" } },
    );
  });

  it("knows operators and clients by their certificates", async () => {
    await getSession(await dial({ service: "operator", instance: "alice" }));
    await getSession(await dial({ service: "client", instance: "wrkspc_b.bob" }));
    assert.deepEqual(
      seen.map(({ role, workspaceId }) => [role, workspaceId]),
      [
        [Role.ROLE_OPERATOR, null],
        [Role.ROLE_CLIENT, "wrkspc_b"],
      ],
    );
  });

  it("refuses nobody, a wrong key, and a wrong key beside a good certificate", async () => {
    const operator = { service: "operator", instance: "alice" };
    for (const error of [
      await getSession(await dial()),
      await getSession(await dial(), bearer("gk-wrong")),
      await getSession(await dial(operator), bearer("gk-wrong")),
    ]) {
      assert.equal(error.code, status.UNAUTHENTICATED, error.message);
    }
    assert.deepEqual(seen, []);
  });

  it("refuses certificates of services and clients without a workspace", async () => {
    for (const holder of [
      { service: "harness", instance: "harness-1" },
      { service: "sandbox", instance: "sandbox-1" },
      { service: "client", instance: "bob" },
    ]) {
      const error = await getSession(await dial(holder));
      assert.equal(error.code, status.PERMISSION_DENIED, `${holder.service}: ${error.message}`);
    }
    assert.deepEqual(seen, []);
  });

  it("refuses a caller who says himself who he is", async () => {
    const metadata = bearer(KEY);
    metadata.set(PRINCIPAL_KEY, Buffer.from([8, 6]));
    const error = await getSession(await dial(), metadata);
    assert.equal(error.code, status.PERMISSION_DENIED);
    assert.deepEqual(seen, []);
  });

  it("refuses methods that are not for outside callers, and unknown ones", async () => {
    const client = await dial({ service: "operator", instance: "alice" });
    const call = (path: string) =>
      new Promise<ServiceError>((resolve) => {
        const raw = (bytes: Buffer) => bytes;
        client.makeUnaryRequest(path, raw, raw, Buffer.alloc(0), (error) => resolve(error as ServiceError));
      });
    const internal = await call(SessionServiceService.acquireLease.path);
    assert.equal(internal.code, status.PERMISSION_DENIED);
    const unknown = await call("/ganglion.session.v1.SessionService/Nonsense");
    assert.equal(unknown.code, status.UNIMPLEMENTED);
  });

  it("passes deadlines on [B134]", async () => {
    const begun = Date.now();
    const error = await getSession(await dial(), bearer(KEY), "sesn_hang", 300);
    assert.equal(error.code, status.DEADLINE_EXCEEDED);
    assert.ok(Date.now() - begun < 3000);
  });

  it("reads a stream only as fast as its reader does, and ends it with the reader [B126]", async () => {
    produced = 0;
    cancelled = Promise.withResolvers();
    const client = await dial();
    const { path, requestSerialize, responseDeserialize } = SessionServiceService.watchEvents;
    const request = {
      sessionId: "sesn_1",
      afterPosition: 0n,
      types: [],
      includePreviews: false,
      fromHead: false,
    };
    const stream = client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      bearer(KEY),
      {},
    );
    stream.on("error", () => {});
    const positions: bigint[] = [];
    for await (const message of stream) {
      positions.push((message as WatchEventsResponse).position);
      if (positions.length === 3) break;
    }
    assert.deepEqual(positions, [1n, 2n, 3n]);
    const soFar = produced;
    assert.ok(soFar < 500, `${soFar} messages of 64 KiB were taken from the service for a reader of three`);
    stream.cancel();
    await cancelled.promise;
  });

  it("bounds the streams that one key has open, on both doors together", async () => {
    const client = await dial();
    const { path, requestSerialize, responseDeserialize } = SessionServiceService.watchEvents;
    const request = {
      sessionId: "sesn_quiet",
      afterPosition: 0n,
      types: [],
      includePreviews: false,
      fromHead: false,
    };
    const open = () => {
      const stream = client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        bearer(KEY),
        {},
      );
      const first = Promise.withResolvers<ServiceError | undefined>();
      stream.on("error", (error) => first.resolve(error as ServiceError));
      stream.once("data", () => first.resolve(undefined));
      return { stream, first: first.promise };
    };
    const streams = Array.from({ length: 500 }, open);
    for (const { first } of streams) assert.equal(await first, undefined);
    const refused = await open().first;
    assert.equal(refused?.code, status.RESOURCE_EXHAUSTED, refused?.message);
    assert.equal((await getSession(client, bearer(KEY))).code, status.NOT_FOUND);
    cancelled = Promise.withResolvers();
    streams.pop()?.stream.cancel();
    await cancelled.promise;
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
    const client = await dial();
    const content = randomBytes(32 << 20);
    assert.equal(await putPayload(client, "large", content), undefined);
    const digest = createHash("sha256").update(content).digest("hex");
    assert.deepEqual(uploads, [`large wrkspc_a ${digest}`]);
    const error = await putPayload(client, "refused", content);
    assert.equal(error?.code, status.RESOURCE_EXHAUSTED, error?.message);
    assert.equal((await getSession(client, bearer(KEY))).code, status.NOT_FOUND);
  }).timeout(60_000);

  it("delivers a whole stream in order [B127]", async () => {
    const client = await dial();
    const { path, requestSerialize, responseDeserialize } = SessionServiceService.watchEvents;
    const request = {
      sessionId: "sesn_1",
      afterPosition: 0n,
      types: [],
      includePreviews: false,
      fromHead: false,
    };
    const stream = client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      bearer(KEY),
      {},
    );
    let last = 0n;
    for await (const message of stream) {
      const { position } = message as WatchEventsResponse;
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
    assert.equal((await getSession(await dial(), bearer(KEY))).code, status.NOT_FOUND);
    assert.equal(mesh.gateway.process.exitCode, null);
    assert.ok(!mesh.gateway.output().includes("failed by a bug"), mesh.gateway.output().slice(-2000));
  }).timeout(30_000);

  it("answers UNAVAILABLE while a service is away, and works again when it is back [B135]", async () => {
    const client = await dial();
    await mesh.stopSession();
    const away = await getSession(client, bearer(KEY));
    assert.equal(away.code, status.UNAVAILABLE, away.message);
    await mesh.startSession();
    let back = await getSession(client, bearer(KEY));
    for (const deadline = Date.now() + 10_000; back.code === status.UNAVAILABLE && Date.now() < deadline; ) {
      back = await getSession(client, bearer(KEY));
    }
    assert.equal(back.code, status.NOT_FOUND);
  });
});

function bigEvent(position: bigint) {
  return {
    id: `sevt_${position}`,
    position,
    createTime: undefined,
    type: "user.message",
    actor: undefined,
    threadId: "",
    epoch: 0n,
    traceparent: "x".repeat(64 << 10),
    mayIgnore: false,
    body: undefined,
  };
}
