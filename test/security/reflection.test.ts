import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestMesh } from "../kit/mesh.ts";
import { sharedStage } from "../kit/shared-stage.ts";

const BUF = new URL("../../node_modules/.bin/buf", import.meta.url).pathname;
const HEALTH = "grpc.health.v1.Health";
const REFLECTION = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/** Services of each process, with a call of each: what operators may not do is refused by the service itself. */
const PROCESSES: Record<string, Record<string, { method: string; says: RegExp }>> = {
  "session-1": {
    "ganglion.session.v1.SessionService": { method: "ListSessions", says: /^\{/ },
    "ganglion.agent.v1.AgentService": { method: "ListAgents", says: /^\{/ },
    "ganglion.agent.v1.EnvironmentService": { method: "ListEnvironments", says: /^\{/ },
    "ganglion.agent.v1.ApiKeyService": { method: "ListApiKeys", says: /^\{/ },
  },
  "mcp-proxy-1": {
    "ganglion.vault.v1.VaultService": { method: "ListVaults", says: /^\{/ },
    "ganglion.audit.v1.AuditService": { method: "ListRecords", says: /^\{/ },
    "ganglion.mcpproxy.v1.BindingService": { method: "EndBinding", says: /"code": "invalid_argument"/ },
    "ganglion.mcpproxy.v1.McpProxyService": { method: "ListTools", says: /"code": "permission_denied"/ },
    "ganglion.mcpproxy.v1.ToolPinService": { method: "ListToolPins", says: /^\{/ },
  },
  "sandbox-1": { "ganglion.sandbox.v1.SandboxService": { method: "ListHands", says: /^\{/ } },
  "harness-1": { "ganglion.harness.v1.HarnessService": { method: "ListActive", says: /^\{/ } },
};

describe("reflection, with nothing but `buf curl` and a certificate [B140, M01]", function () {
  this.timeout(60_000);
  let mesh: TestMesh;

  before(async function () {
    this.timeout(240_000);
    ({ mesh } = await sharedStage());
  });

  const curl = async (certificate: { cert: string; key: string }, ...args: string[]) => {
    const { GANGLION_CA = "" } = mesh.env;
    const files = ["--cacert", GANGLION_CA, "--cert", certificate.cert, "--key", certificate.key];
    const child = spawn(BUF, ["curl", "--protocol", "grpc", ...files, ...args], {
      env: { PATH: process.env.PATH ?? "", HOME: mesh.files.state },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await exit, stdout, stderr };
  };
  const operator = () => ({ cert: mesh.env.GANGLION_CERT ?? "", key: mesh.env.GANGLION_KEY ?? "" });
  const client = () => {
    const folder = mesh.tlsDir("client");
    return { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  };
  const lines = (printed: string) => printed.split("\n").filter((line) => line !== "");

  for (const [process, services] of Object.entries(PROCESSES)) {
    it(`${process} lists its services`, async () => {
      const { code, stdout, stderr } = await curl(
        operator(),
        "--list-services",
        `https://${mesh.address(process)}`,
      );
      assert.equal(code, 0, stderr);
      const listed = lines(stdout).filter((name) => !REFLECTION.includes(name));
      assert.deepEqual(listed.toSorted(), [...Object.keys(services), HEALTH].toSorted());
    });

    for (const [service, { method, says }] of Object.entries(services)) {
      it(`${process} describes ${service} and lets it be called`, async () => {
        const url = `https://${mesh.address(process)}`;
        const described = await curl(operator(), "--list-methods", url);
        assert.equal(described.code, 0, described.stderr);
        assert.ok(lines(described.stdout).includes(`${service}/${method}`), described.stdout);
        const called = await curl(operator(), "-d", "{}", `${url}/${service}/${method}`);
        assert.match(`${called.stdout}${called.stderr}`.trim(), says);
      });
    }

    it(`${process} tells a client certificate nothing`, async () => {
      const { code, stdout, stderr } = await curl(
        client(),
        "--list-services",
        `https://${mesh.address(process)}`,
      );
      assert.notEqual(code, 0);
      assert.equal(stdout, "");
      assert.match(stderr, /permission_denied|PermissionDenied|role/i);
    });
  }

  it("the public address lists, describes and lets every public service be called", async () => {
    const url = `https://${mesh.grpc}`;
    const { code, stdout, stderr } = await curl(operator(), "--list-services", url);
    assert.equal(code, 0, stderr);
    const listed = lines(stdout).filter((name) => name.startsWith("ganglion."));
    const open = Object.values(PROCESSES).flatMap((services) =>
      Object.entries(services).filter(([service]) => listed.includes(service)),
    );
    assert.equal(open.length, listed.length);
    assert.ok(listed.includes("ganglion.session.v1.SessionService"), stdout);
    assert.ok(!listed.includes("ganglion.mcpproxy.v1.McpProxyService"), "nobody outside may call it");
    const methods = lines((await curl(operator(), "--list-methods", url)).stdout);
    for (const [service, { method, says }] of open) {
      assert.ok(methods.includes(`${service}/${method}`), `${service} is not described`);
      const called = await curl(operator(), "-d", "{}", `${url}/${service}/${method}`);
      assert.match(`${called.stdout}${called.stderr}`.trim(), says, service);
    }
    const health = await curl(operator(), "-d", "{}", `${url}/${HEALTH}/Check`);
    assert.match(health.stdout, /"status": ?"SERVING"/);
  });

  it("the public address refuses reflection to a client certificate and to an API key", async () => {
    const url = `https://${mesh.grpc}`;
    const byCertificate = await curl(client(), "--list-services", url);
    assert.notEqual(byCertificate.code, 0);
    assert.equal(byCertificate.stdout, "");
    const both = ["--reflect-header", `authorization: Bearer ${mesh.apiKey}`, "--list-services", url];
    const byKey = await curl(operator(), ...both);
    assert.notEqual(byKey.code, 0, "a key that is shown decides, whatever certificate comes with it");
    assert.equal(byKey.stdout, "");
  });
});
