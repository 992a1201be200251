import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client, ChannelCredentials as Credentials, Metadata, status } from "@grpc/grpc-js";
import { fromStatus } from "../../services/common/errors/from-status.ts";
import { loadContracts } from "../../services/common/grpc/contracts.ts";
import { issueCertificate } from "../../services/common/tls/issue-certificate.ts";
import { Role } from "../../services/gen/ganglion/types/v1/access.ts";
import { TestCa } from "../kit/ca.ts";
import type { TestMesh } from "../kit/mesh.ts";
import { sharedStage } from "../kit/shared-stage.ts";

const IMAGE = new URL("../../services/gen/image.binpb", import.meta.url).pathname;
const HOSTS: Readonly<Record<string, string>> = {
  "ganglion.session.v1": "session-1",
  "ganglion.agent.v1": "session-1",
  "ganglion.vault.v1": "mcp-proxy-1",
  "ganglion.mcpproxy.v1": "mcp-proxy-1",
  "ganglion.audit.v1": "mcp-proxy-1",
  "ganglion.sandbox.v1": "sandbox-1",
  "ganglion.harness.v1": "harness-1",
};
const METHODS = [...loadContracts(IMAGE).methods.values()].filter(({ path }) =>
  path.startsWith("/ganglion."),
);
const REFLECTION = [
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/** No protobuf message: whoever may call a method is told so after the permission was looked at, and nothing happens. */
const MALFORMED = Buffer.from([0xff, 0xff]);
/** ServerReflectionRequest{list_services: "*"} */
const LIST_SERVICES = Buffer.from([0x3a, 0x01, 0x2a]);
const DEADLINE_MS = 15_000;

/** Who a caller is, at a service's own port and at the public address. */
interface Identity {
  readonly name: string;
  readonly credentials: Credentials;
  readonly apiKey?: string;
  /** What it is at a service's own port; "refused" by TLS, or a certificate without a role. */
  readonly direct: Role | "no role" | "refused";
  /** What it is at the public address. */
  readonly outside: Role | "no role" | "unknown" | "refused";
}

describe("every identity and every method, as the protos say [A110]", function () {
  this.timeout(180_000);
  let mesh: TestMesh;
  let ca: TestCa;
  let identities: Identity[];
  const clients = new Map<string, Client>();

  before(async function () {
    this.timeout(240_000);
    ({ mesh } = await sharedStage());
    ca = await TestCa.create();
    identities = await makeIdentities(mesh, ca);
  });
  after(() => {
    for (const client of clients.values()) client.close();
    ca?.remove();
  });

  /** What a call ends with: code and reason; "OK" at the first message of an answer. */
  const call = (identity: Identity, address: string, path: string, body: Buffer): Promise<string> => {
    const key = `${identity.name} ${address}`;
    const client =
      clients.get(key) ??
      new Client(address, identity.credentials, { "grpc.ssl_target_name_override": "localhost" });
    clients.set(key, client);
    const metadata = new Metadata();
    if (identity.apiKey) metadata.set("authorization", `Bearer ${identity.apiKey}`);
    const same = (bytes: Buffer) => bytes;
    const stream = client.makeBidiStreamRequest<Buffer, Buffer>(path, same, same, metadata, {
      deadline: Date.now() + DEADLINE_MS,
    });
    const end = Promise.withResolvers<string>();
    stream.on("data", () => end.resolve("OK"));
    stream.on("error", (error) => {
      const { code, reason } = fromStatus(error, "peer");
      end.resolve(`${code}/${reason}`);
    });
    stream.on("status", ({ code }) => code === status.OK && end.resolve("OK"));
    stream.write(body);
    stream.end();
    return end.promise.finally(() => stream.cancel());
  };

  const expected = (who: Identity["outside"], callers: ReadonlySet<Role>): RegExp => {
    if (who === "refused") return /^UNAVAILABLE\//;
    if (who === "unknown") return /^UNAUTHENTICATED\//;
    if (who === "no role" || !callers.has(who)) return /^PERMISSION_DENIED\/ROLE_NOT_ALLOWED$/;
    return /^INVALID_ARGUMENT\//;
  };
  const isPublic = (who: Identity["outside"]) => who === Role.ROLE_CLIENT || who === Role.ROLE_OPERATOR;

  it("knows where every method of the protos is served, and every service's process", () => {
    assert.ok(METHODS.length >= 50, `${METHODS.length} methods`);
    assert.deepEqual(
      METHODS.filter(({ service }) => !hostOf(service)).map(({ path }) => path),
      [],
    );
    assert.deepEqual(
      METHODS.filter(({ access }) => !access).map(({ path }) => path),
      [],
    );
  });

  for (const { path, service, method, access } of METHODS) {
    const callers = access?.callers ?? new Set<Role>();
    const host = hostOf(service) as string;
    it(`${service}/${method}`, async () => {
      for (const identity of identities) {
        const direct = await call(identity, mesh.address(host), path, MALFORMED);
        assert.match(direct, expected(identity.direct, callers), `${identity.name} at ${host}`);
        const outside = await call(identity, mesh.grpc, path, MALFORMED);
        const who = identity.outside;
        const open = isPublic(who) ? callers : new Set<Role>();
        assert.match(outside, expected(who, open), `${identity.name} at the public address`);
      }
    });
  }

  it("reflection answers operators only [A099]", async () => {
    const operators = new Set([Role.ROLE_OPERATOR]);
    const wanted = (who: Identity["outside"]) =>
      who === Role.ROLE_OPERATOR ? /^OK$/ : expected(who, operators);
    for (const identity of identities) {
      for (const path of REFLECTION) {
        for (const host of new Set(Object.values(HOSTS))) {
          const answer = await call(identity, mesh.address(host), path, LIST_SERVICES);
          assert.match(answer, wanted(identity.direct), `${identity.name} at ${host}`);
        }
        const answer = await call(identity, mesh.grpc, path, LIST_SERVICES);
        assert.match(answer, wanted(identity.outside), `${identity.name} at the public address`);
      }
    }
  });

  it("health answers everybody that TLS lets in, and channelz is not there [A099]", async () => {
    for (const identity of identities) {
      const health = "/grpc.health.v1.Health/Check";
      const isIn = (who: Identity["outside"]) => (who === "refused" ? /^UNAVAILABLE\// : /^OK$/);
      for (const host of new Set(Object.values(HOSTS))) {
        const answer = await call(identity, mesh.address(host), health, Buffer.alloc(0));
        assert.match(answer, isIn(identity.direct), `${identity.name} at ${host}`);
      }
      assert.match(await call(identity, mesh.grpc, health, Buffer.alloc(0)), isIn(identity.outside));
    }
    const operator = identities.find(({ name }) => name === "operator") as Identity;
    for (const address of [...new Set(Object.values(HOSTS))]
      .map((host) => mesh.address(host))
      .concat(mesh.grpc)) {
      const channelz = "/grpc.channelz.v1.Channelz/GetServers";
      assert.match(await call(operator, address, channelz, Buffer.alloc(0)), /^UNIMPLEMENTED\//);
      const unknown = "/ganglion.session.v1.SessionService/Nothing";
      assert.match(await call(operator, address, unknown, Buffer.alloc(0)), /^UNIMPLEMENTED\//);
    }
  });

  it("a harness without a valid certificate is refused by every service [A108]", async () => {
    const names = ["no certificate", "harness of another authority", "expired harness"];
    const path = "/ganglion.session.v1.SessionService/AcquireLease";
    for (const name of names) {
      const identity = identities.find((one) => one.name === name) as Identity;
      for (const host of new Set(Object.values(HOSTS))) {
        assert.match(await call(identity, mesh.address(host), path, MALFORMED), /^UNAVAILABLE\//, name);
      }
    }
    const harness = identities.find(({ name }) => name === "harness") as Identity;
    assert.match(await call(harness, mesh.address("session-1"), path, MALFORMED), /^INVALID_ARGUMENT\//);
  });

  it("a sandbox certificate calling VaultService gets PERMISSION_DENIED [A110]", async () => {
    const sandbox = identities.find(({ name }) => name === "sandbox") as Identity;
    const methods = METHODS.filter(({ service }) => service === "ganglion.vault.v1.VaultService");
    assert.ok(methods.length >= 9);
    for (const { path } of methods) {
      assert.equal(
        await call(sandbox, mesh.address("mcp-proxy-1"), path, MALFORMED),
        "PERMISSION_DENIED/ROLE_NOT_ALLOWED",
      );
    }
  });
});

function hostOf(service: string): string | undefined {
  return HOSTS[service.slice(0, service.lastIndexOf("."))];
}

async function makeIdentities(mesh: TestMesh, stranger: TestCa): Promise<Identity[]> {
  const read = (holder: string, file: string) => readFileSync(join(mesh.tlsDir(holder), file));
  const trust = read("operator", "ca.pem");
  const shows = (holder: string) =>
    Credentials.createSsl(trust, read(holder, "key.pem"), read(holder, "cert.pem"));
  const service = (name: string, holder: string, direct: Role): Identity => ({
    name,
    credentials: shows(holder),
    direct,
    outside: "no role",
  });
  const issue = async (authority: TestCa["authority"], life: { notBefore?: Date; lifeMs?: number }) => {
    const made = await issueCertificate(authority, { service: "harness", instance: "harness-1", ...life });
    return Credentials.createSsl(trust, Buffer.from(made.keyPem), Buffer.from(made.certPem));
  };
  const authority = {
    certPem: readFileSync(join(mesh.files.tls, "ca.pem"), "utf8"),
    keyPem: readFileSync(join(mesh.files.tls, "ca.key.pem"), "utf8"),
  };
  const anonymous = Credentials.createSsl(trust);
  const expired = { notBefore: new Date(Date.now() - 7_200_000), lifeMs: 3_600_000 };
  return [
    service("session", "session-1", Role.ROLE_SESSION),
    service("harness", "harness-2", Role.ROLE_HARNESS),
    service("sandbox", "sandbox-1", Role.ROLE_SANDBOX),
    service("mcp-proxy", "mcp-proxy-1", Role.ROLE_MCP_PROXY),
    service("gateway", "gateway-1", Role.ROLE_GATEWAY),
    {
      name: "operator",
      credentials: shows("operator"),
      direct: Role.ROLE_OPERATOR,
      outside: Role.ROLE_OPERATOR,
    },
    {
      name: "client certificate",
      credentials: shows("client"),
      direct: "no role",
      outside: Role.ROLE_CLIENT,
    },
    {
      name: "API key",
      credentials: anonymous,
      apiKey: mesh.apiKey,
      direct: "refused",
      outside: Role.ROLE_CLIENT,
    },
    {
      name: "wrong API key",
      credentials: anonymous,
      apiKey: "gk-wrong",
      direct: "refused",
      outside: "unknown",
    },
    { name: "no certificate", credentials: anonymous, direct: "refused", outside: "unknown" },
    {
      name: "harness of another authority",
      credentials: await issue(stranger.authority, {}),
      direct: "refused",
      outside: "refused",
    },
    {
      name: "expired harness",
      credentials: await issue(authority, expired),
      direct: "refused",
      outside: "refused",
    },
  ];
}
