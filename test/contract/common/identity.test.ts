import assert from "node:assert/strict";
import { connect } from "node:http2";
import { connect as connectTls } from "node:tls";
import { Client, Server as GrpcServer, Metadata, ServerCredentials } from "@grpc/grpc-js";
import { fromStatus } from "../../../services/common/errors/from-status.ts";
import type { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { unary } from "../../../services/common/grpc/handlers.ts";
import {
  encodeForwardedPrincipal,
  PRINCIPAL_KEY,
  type Principal,
} from "../../../services/common/grpc/principal.ts";
import { createChannelCredentials } from "../../../services/common/tls/channel-credentials.ts";
import { createAuthority, issueCertificate } from "../../../services/common/tls/issue-certificate.ts";
import { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { Fixture } from "./fixture.ts";

const REQUEST = { sessionId: "sesn_1" };
const PATH = "/ganglion.session.v1.SessionService/GetSession";

describe("who may call", () => {
  let fixture: Fixture;
  let address: string;
  let runs = 0;
  let caller: Principal | undefined;
  before(async () => {
    fixture = await Fixture.create();
    const server = await fixture.serve({
      getSession: unary(async (_request, ctx) => {
        runs += 1;
        caller = ctx.principal;
        return { session: undefined };
      }),
    });
    address = server.address;
  });
  beforeEach(() => {
    runs = 0;
    caller = undefined;
  });
  after(() => fixture.stop());

  /** A call with raw metadata. */
  const raw = async (as: string, fill: (metadata: Metadata) => void): Promise<GanglionError | undefined> => {
    const client = new Client(address, createChannelCredentials(await fixture.ca.bundle(as), "session"), {
      "grpc.ssl_target_name_override": "session.ganglion.local",
    });
    const metadata = new Metadata();
    fill(metadata);
    const method = SessionServiceService.getSession;
    try {
      return await new Promise((resolve) => {
        client.makeUnaryRequest(
          method.path,
          method.requestSerialize,
          method.responseDeserialize,
          REQUEST,
          metadata,
          (error) => resolve(error ? fromStatus(error, "session") : undefined),
        );
      });
    } finally {
      client.close();
    }
  };

  it("is what the proto says, by the certificate's service", async () => {
    for (const [as, allowed] of [
      ["operator", true],
      ["harness", true],
      ["sandbox", true],
      ["mcp-proxy", true],
      ["session", false],
      ["gateway", false],
    ] as const) {
      const client = await fixture.client(address, as);
      if (allowed) await client.getSession(REQUEST);
      else {
        await assert.rejects(client.getSession(REQUEST), {
          code: "PERMISSION_DENIED",
          reason: "ROLE_NOT_ALLOWED",
        });
      }
    }
    assert.equal(runs, 4);
  });

  it("excludes client certificates and unknown services that come directly", async () => {
    for (const as of ["client", "postgres", "nobody"]) {
      const more = { usage: "both" } as const;
      const client = createClient(
        SessionServiceService,
        address,
        await fixture.ca.bundle(as, "x-1", more),
        "session",
      );
      await assert.rejects(client.getSession(REQUEST), {
        code: "PERMISSION_DENIED",
        reason: "ROLE_NOT_ALLOWED",
      });
      client.close();
    }
    assert.equal(runs, 0);
  });

  it("believes the gateway about who is behind it, and nobody else", async () => {
    const behind = {
      role: Role.ROLE_CLIENT,
      workspaceId: "wrkspc_a",
      keyId: "apikey_1",
      spiffeId: "",
    } as Principal;
    const value = encodeForwardedPrincipal(behind);
    assert.equal(await raw("gateway", (m) => m.set(PRINCIPAL_KEY, value)), undefined);
    assert.equal(caller?.role, Role.ROLE_CLIENT);
    assert.equal(caller?.workspaceId, "wrkspc_a");
    assert.equal(caller?.keyId, "apikey_1");
    assert.equal(caller?.spiffeId, "");
    assert.equal(caller?.peerSpiffeId, "spiffe://ganglion.local/gateway/gateway-1");
    runs = 0;
    for (const as of ["operator", "harness", "session", "sandbox", "mcp-proxy"]) {
      const error = await raw(as, (m) => m.set(PRINCIPAL_KEY, value));
      assert.equal(error?.reason, "PRINCIPAL_NOT_ACCEPTED", as);
      assert.equal(error?.code, "PERMISSION_DENIED");
    }
    assert.equal(runs, 0);
  });

  it("refuses a forwarded principal that is not complete or not one of the two roles", async () => {
    const values = [
      { role: Role.ROLE_CLIENT, workspaceId: "", keyId: "apikey_1" },
      { role: Role.ROLE_CLIENT, workspaceId: "wrkspc_a", keyId: "" },
      { role: Role.ROLE_OPERATOR, workspaceId: "wrkspc_a", keyId: "apikey_1" },
      { role: Role.ROLE_HARNESS, workspaceId: "", keyId: "apikey_1" },
      { role: Role.ROLE_UNSPECIFIED, workspaceId: "wrkspc_a", keyId: "apikey_1" },
    ].map((p) => encodeForwardedPrincipal({ ...p, spiffeId: "" } as Principal));
    for (const value of [...values, Buffer.alloc(0), Buffer.from([0xff, 0xff])]) {
      const error = await raw("gateway", (m) => m.set(PRINCIPAL_KEY, value));
      assert.equal(error?.code, "PERMISSION_DENIED", value.toString("hex"));
    }
    assert.equal(runs, 0);
  });

  it("[A100] refuses metadata that we act upon when it has two values", async () => {
    const one = encodeForwardedPrincipal({
      role: Role.ROLE_CLIENT,
      workspaceId: "wrkspc_a",
      keyId: "k",
    } as Principal);
    const twice = await raw("gateway", (m) => {
      m.add(PRINCIPAL_KEY, one);
      m.add(PRINCIPAL_KEY, one);
    });
    assert.equal(twice?.reason, "METADATA_NOT_SINGLE");
    for (const key of ["ganglion-session-token", "ganglion-anything", "x-api-key"]) {
      const error = await raw("harness", (m) => {
        m.add(key, "s1");
        m.add(key, "s2");
      });
      assert.equal(error?.code, "INVALID_ARGUMENT", key);
      assert.equal(error?.reason, "METADATA_NOT_SINGLE", key);
    }
    assert.equal(runs, 0);
    assert.equal(await raw("harness", (m) => m.set("ganglion-session-token", "s1")), undefined);
  });

  it("[A108] no certificate, a foreign one, an expired one, a server's one: the handshake fails and nothing runs", async () => {
    const foreign = await createAuthority();
    const ca = fixture.ca.authority.certPem;
    const bad = {
      none: undefined,
      foreign: await issueCertificate(foreign, { service: "operator", instance: "o-1" }),
      expired: await issueCertificate(fixture.ca.authority, {
        service: "operator",
        instance: "o-1",
        notBefore: new Date(Date.now() - 7_200_000),
        lifeMs: 3_600_000,
      }),
      server: await issueCertificate(fixture.ca.authority, {
        service: "operator",
        instance: "o-1",
        usage: "server",
      }),
    };
    for (const [name, leaf] of Object.entries(bad)) {
      const ended = await new Promise<string>((resolve) => {
        const session = connect(`https://${address}`, {
          ca,
          checkServerIdentity: () => undefined,
          ...(leaf ? { cert: leaf.certPem, key: leaf.keyPem } : {}),
        });
        session.on("error", (error) => resolve(error.message));
        session.on("close", () => resolve("closed"));
        const stream = session.request({
          ":method": "POST",
          ":path": PATH,
          "content-type": "application/grpc",
        });
        stream.on("response", () => resolve("answered"));
        stream.on("error", (error) => resolve(error.message));
        stream.on("close", () => resolve("closed"));
        stream.end(Buffer.from([0, 0, 0, 0, 0]));
      });
      assert.notEqual(ended, "answered", name);
    }
    assert.equal(runs, 0);
    assert.equal(fixture.lines.filter((line) => line.msg === "handshake refused").length, 4);
  });

  it("[A108] plaintext and TLS 1.2 are refused", async () => {
    const plain = await new Promise<string>((resolve) => {
      const session = connect(`http://${address}`);
      session.on("error", (error) => resolve(error.message));
      session.on("close", () => resolve("closed"));
      session
        .request({ ":path": PATH })
        .on("response", () => resolve("answered"))
        .on("error", () => {});
    });
    assert.notEqual(plain, "answered");
    const [host = "", port] = address.split(":");
    const old = await new Promise<string>((resolve) => {
      const socket = connectTls(
        {
          host,
          port: Number(port),
          ca: fixture.ca.authority.certPem,
          maxVersion: "TLSv1.2",
          checkServerIdentity: () => undefined,
        },
        () => resolve("connected"),
      );
      socket.on("error", (error) => resolve(error.message));
    });
    assert.notEqual(old, "connected");
    assert.equal(runs, 0);
  });

  it("a client accepts the service it wants only, whatever its address", async () => {
    const client = await fixture.client(address, "operator", "sandbox");
    await assert.rejects(client.getSession(REQUEST), { code: "UNAVAILABLE", reason: "UNREACHABLE" });
    assert.equal(runs, 0);
  });

  it("a client does not talk to a server of another authority or without TLS", async () => {
    const impostor = await createAuthority();
    const leaf = await issueCertificate(impostor, { service: "session", instance: "session-1" });
    for (const credentials of [
      ServerCredentials.createInsecure(),
      ServerCredentials.createSsl(null, [
        { cert_chain: Buffer.from(leaf.certPem), private_key: Buffer.from(leaf.keyPem) },
      ]),
    ]) {
      const server = new GrpcServer();
      const port = await new Promise<number>((resolve, reject) => {
        server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
          error ? reject(error) : resolve(bound),
        );
      });
      const client = await fixture.client(`127.0.0.1:${port}`);
      await assert.rejects(client.getSession(REQUEST), { code: "UNAVAILABLE" });
      server.forceShutdown();
    }
  });

  it("[A098] other spellings of a path reach no handler", async () => {
    const bundle = await fixture.ca.bundle("operator");
    const session = connect(`https://${address}`, {
      ...bundle.material(),
      checkServerIdentity: () => undefined,
    });
    session.on("error", () => {});
    for (const path of [
      `/${PATH}`,
      `${PATH}/`,
      PATH.toLowerCase(),
      PATH.replace("G", "%47"),
      PATH.slice(1),
      `${PATH}?x`,
    ]) {
      const status = await new Promise<unknown>((resolve) => {
        const stream = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": "application/grpc",
        });
        stream.on("response", (headers) => resolve(headers["grpc-status"]));
        stream.on("error", () => resolve("stream refused"));
        stream.on("close", () => resolve("stream closed"));
        stream.end(Buffer.from([0, 0, 0, 0, 0]));
      });
      assert.notEqual(String(status), "0", path);
    }
    session.destroy();
    assert.equal(runs, 0);
  });

  it("a renewed certificate is used for new connections, and open ones go on", async () => {
    const directory = await fixture.ca.directory("session");
    const tls = new TlsBundle(directory, { pollMs: 20 });
    const server = await fixture.serve({ getSession: unary(async () => ({ session: undefined })) }, { tls });
    const serials = async () => {
      const [host = "", port] = server.address.split(":");
      const operator = await fixture.ca.bundle("operator");
      return new Promise<string>((resolve, reject) => {
        const socket = connectTls(
          {
            host,
            port: Number(port),
            ...operator.material(),
            ALPNProtocols: ["h2"],
            checkServerIdentity: () => undefined,
          },
          () => {
            resolve(socket.getPeerCertificate().serialNumber);
            socket.destroy();
          },
        );
        socket.on("error", reject);
      });
    };
    const clientDirectory = await fixture.ca.directory("operator");
    const clientTls = new TlsBundle(clientDirectory, { pollMs: 20 });
    const client = createClient(SessionServiceService, server.address, clientTls, "session");
    await client.getSession(REQUEST);
    const before = await serials();
    const changed = new Promise((resolve) => tls.once("change", () => resolve(undefined)));
    await fixture.ca.renew(directory, "session");
    await changed;
    assert.notEqual(await serials(), before);
    await client.getSession(REQUEST);

    const clientChanged = new Promise((resolve) => clientTls.once("change", () => resolve(undefined)));
    await fixture.ca.renew(clientDirectory, "operator", "operator-2");
    await clientChanged;
    const fresh = createClient(SessionServiceService, address, clientTls, "session");
    await fresh.getSession(REQUEST);
    assert.equal(caller?.instance, "operator-2");
    for (const closing of [client, fresh, tls, clientTls]) closing.close();
  });

  it("a call over a connection whose certificate has expired meanwhile is UNAUTHENTICATED", async () => {
    const tls = await fixture.ca.bundle("operator", "short-1", {
      notBefore: new Date(Date.now() - 60_000),
      lifeMs: 62_000,
    });
    const client = createClient(SessionServiceService, address, tls, "session");
    await client.getSession(REQUEST);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await assert.rejects(client.getSession(REQUEST), {
      code: "UNAUTHENTICATED",
      reason: "PEER_IDENTITY_INVALID",
    });
    client.close();
  });
});
