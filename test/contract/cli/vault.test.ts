import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeClientEnv } from "../../../services/cli/up/client-env.ts";
import { runCli } from "../../kit/mesh.ts";
import { type GatewayUnderTest, playApiKeys, startGateway } from "../gateway/gateway-kit.ts";
import { ProxyKit } from "../mcp-proxy/proxy-kit.ts";

const SERVER = "https://mcp.example.test/mcp";

describe("ganglion vault", function () {
  // Each call is a process of its own.
  this.timeout(120_000);
  let kit: ProxyKit;
  let mesh: GatewayUnderTest;
  let folder: string;
  let vaultId: string;

  before(async () => {
    kit = await ProxyKit.start();
    mesh = await startGateway([playApiKeys("gk-unused")], {
      ca: kit.ca,
      address: kit.service.listening.addr,
    });
    folder = mkdtempSync(join(tmpdir(), "ganglion-cli-vault-"));
    writeClientEnv(join(folder, "client.env"), {
      GANGLION_GRPC_ADDR: mesh.grpc,
      GANGLION_CERT: join(await kit.ca.directory("operator"), "cert.pem"),
    });
    vaultId = String((await vault("create", "of a test")).id);
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await mesh?.stop();
    await kit?.stop();
  });

  const secret = () => `cnry-${randomBytes(20).toString("hex")}`;
  const run = (args: string[], stdin?: string) =>
    runCli(["vault", ...args, "--json", "--state-dir", folder], stdin === undefined ? {} : { stdin });
  const withInput = async (stdin: string | undefined, ...args: string[]) => {
    const { code, stdout, stderr } = await run(args, stdin);
    assert.equal(code, 0, stderr);
    for (const line of (stdin ?? "").split("\n"))
      assert.ok(line === "" || !`${stdout}${stderr}`.includes(line));
    return JSON.parse(stdout.trim().split("\n")[0] ?? "{}") as Record<string, unknown>;
  };
  const vault = (...args: string[]) => withInput(undefined, ...args);
  const stored = async (credentialId: unknown) => {
    const path = `ganglion/data/vaults/${vaultId}/${String(credentialId)}`;
    const { body, status } = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
    return status === 200 ? (body.data as { data: Record<string, string> }).data : undefined;
  };

  it("makes a decoy, and says of one that it is one", async () => {
    const decoy = await vault("create", "Backup keys", "--decoy");
    assert.equal(decoy.isDecoy, true);
    const listed = await runCli(["vault", "list", "--state-dir", folder]);
    assert.match(listed.stdout, new RegExp(`${String(decoy.id)} +Backup keys \\(decoy\\)`));
  });

  it("stores OAuth tokens from three lines and replaces one of them", async () => {
    const [token, refreshToken, clientSecret, other] = [secret(), secret(), secret(), secret()];
    const made = await withInput(
      `${token}\n${refreshToken}\n${clientSecret}\n`,
      ...["put", vaultId, "--mcp-url", SERVER, "--client-id", "client-1", "--scope", "read"],
      ...["--token-endpoint", "https://id.example.test/token", "--token-auth", "client_secret_post"],
    );
    const { id } = made;
    const document = { secret: token, refresh_token: refreshToken, client_secret: clientSecret };
    assert.deepEqual(await stored(id), document);
    await withInput(`${other}\n`, "rotate", vaultId, String(id), "--which", "refresh-token");
    assert.deepEqual(await stored(id), { ...document, refresh_token: other });
    const { refresh } = (await vault("change", vaultId, String(id), "--scope", "")).mcpOauth as {
      refresh: { clientId: string; scope?: string };
    };
    assert.equal(refresh.clientId, "client-1");
    assert.equal(refresh.scope ?? "", "");
  });

  it("stores a variable for the hosts that are named, and changes them", async () => {
    const value = secret();
    const where = ["--allow-host", "api.example.test", "--allow-host", "*.example.org", "--in", "header"];
    const { id } = await withInput(value, "put", vaultId, "--env", "SERVICE_TOKEN", ...where);
    assert.deepEqual(await stored(id), { secret: value });
    const shown = (await vault("show", vaultId, String(id))).environmentVariable as Record<string, unknown>;
    assert.deepEqual(shown.networking, { limited: { allowedHosts: ["api.example.test", "*.example.org"] } });
    assert.deepEqual(shown.injectionLocation, { header: true, body: false });
    const changed = await vault("change", vaultId, String(id), "--any-host", "--name", "everywhere");
    const { networking } = changed.environmentVariable as Record<string, unknown>;
    assert.deepEqual(networking, { unrestricted: {} });
    assert.equal(changed.displayName, "everywhere");
    await vault("archive", vaultId, String(id));
    assert.equal(await stored(id), undefined);
    await vault("delete", vaultId, String(id));
    assert.notEqual((await run(["show", vaultId, String(id)])).code, 0);
  });

  it("archives and deletes a vault", async () => {
    const other = String((await vault("create", "another")).id);
    await withInput(secret(), "put", other, "--mcp-url", SERVER);
    assert.ok((await vault("archive", other)).archiveTime);
    const listed = await run(["list", "--archived"]);
    assert.ok(listed.stdout.includes(other));
    assert.ok(!(await run(["list"])).stdout.includes(other));
    await vault("delete", other);
    assert.ok(!(await run(["list", "--archived"])).stdout.includes(other));
  });

  for (const [what, args] of [
    ["nothing that says what for", ["put", "vlt_x"]],
    ["two things to be for", ["put", "vlt_x", "--mcp-url", SERVER, "--env", "A"]],
    ["a variable without hosts", ["put", "vlt_x", "--env", "A"]],
    ["half of the refresh settings", ["put", "vlt_x", "--mcp-url", SERVER, "--client-id", "a"]],
    ["an unknown secret to rotate", ["rotate", "vlt_x", "vcrd_x", "--which", "key"]],
    ["an unknown place", ["put", "vlt_x", "--env", "A", "--any-host", "--in", "url"]],
  ] as const) {
    it(`says with 64 that there is ${what}`, async () => {
      const { code } = await run([...args], "unused-secret");
      assert.equal(code, 64);
    });
  }

  it("wants as many lines as there are secrets", async () => {
    const args = ["--client-id", "a", "--token-endpoint", "https://id.example.test/token"];
    const { code, stdout } = await run(
      ["put", vaultId, "--mcp-url", "https://two.test", ...args],
      "only-one-line",
    );
    assert.equal(code, 65);
    assert.match(stdout, /2 lines: token, refresh token/);
  });
});
