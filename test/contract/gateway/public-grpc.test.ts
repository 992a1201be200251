import assert from "node:assert/strict";
import { type ServiceError, status } from "@grpc/grpc-js";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { unary } from "../../../services/common/grpc/handlers.ts";
import { PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import {
  type GetSessionRequest,
  SessionServiceService,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { ErrorInfo } from "../../../services/gen/google/rpc/error_details.ts";
import { Status } from "../../../services/gen/google/rpc/status.ts";
import { type GatewayUnderTest, implementSome, playApiKeys, startGateway } from "./gateway-kit.ts";
import { bearer, dial, getSession } from "./public-client.ts";

const KEY = "gk-test-0123456789";

describe("the public gRPC address", () => {
  let mesh: GatewayUnderTest;
  const seen: { role: Role; workspaceId: string | null; keyId: string | null; authorization: boolean }[] = [];

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
    });
    mesh = await startGateway([session, playApiKeys(KEY)]);
  });
  after(() => mesh?.stop());
  beforeEach(() => {
    seen.length = 0;
  });

  it("tells the service who is behind it and keeps the API key to itself", async () => {
    const error = await getSession(await dial(mesh), bearer(KEY));
    assert.equal(error.code, status.NOT_FOUND, error.message);
    assert.deepEqual(seen, [
      { role: Role.ROLE_CLIENT, workspaceId: "wrkspc_a", keyId: "apikey_1", authorization: false },
    ]);
  });

  it("passes status, message and details on as they are", async () => {
    const error = await getSession(await dial(mesh), bearer(KEY));
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
    await getSession(await dial(mesh, { service: "operator", instance: "alice" }));
    await getSession(await dial(mesh, { service: "client", instance: "wrkspc_b.bob" }));
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
      await getSession(await dial(mesh)),
      await getSession(await dial(mesh), bearer("gk-wrong")),
      await getSession(await dial(mesh, operator), bearer("gk-wrong")),
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
      const error = await getSession(await dial(mesh, holder));
      assert.equal(error.code, status.PERMISSION_DENIED, `${holder.service}: ${error.message}`);
    }
    assert.deepEqual(seen, []);
  });

  it("refuses a caller who says himself who he is", async () => {
    const metadata = bearer(KEY);
    metadata.set(PRINCIPAL_KEY, Buffer.from([8, 6]));
    const error = await getSession(await dial(mesh), metadata);
    assert.equal(error.code, status.PERMISSION_DENIED);
    assert.deepEqual(seen, []);
  });

  it("refuses methods that are not for outside callers, and unknown ones", async () => {
    const client = await dial(mesh, { service: "operator", instance: "alice" });
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
    const error = await getSession(await dial(mesh), bearer(KEY), "sesn_hang", 300);
    assert.equal(error.code, status.DEADLINE_EXCEEDED);
    assert.ok(Date.now() - begun < 3000);
  });

  it("answers UNAVAILABLE while a service is away, and works again when it is back [B135]", async () => {
    const client = await dial(mesh);
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
