import assert from "node:assert/strict";
import { migrate, migrationNames } from "../../../services/mcp-proxy/store/migrate.ts";
import { runService } from "../../kit/start-service.ts";
import { until } from "../../kit/until.ts";
import { ProxyKit } from "./proxy-kit.ts";

const MAIN = new URL("../../../services/mcp-proxy/main.ts", import.meta.url);

describe("mcp-proxy at its start", function () {
  this.timeout(60_000);
  let kit: ProxyKit;

  before(async () => {
    kit = await ProxyKit.start();
  });

  after(() => kit?.stop());

  const run = (bootstrap: object | undefined, env: Record<string, string> = {}) =>
    runService(MAIN, {
      env: {
        ...kit.postgres.env("ganglion_proxy"),
        GANGLION_INSTANCE: "mcp-proxy-9",
        GANGLION_LISTEN: "127.0.0.1:0",
        GANGLION_SESSION_ADDR: kit.sessionAddress,
        ...env,
      },
      ...(bootstrap ? { bootstrap } : {}),
    });

  it("refuses a wrapped login that was opened before, loudly, and for good [A123]", async () => {
    const bootstrap = await kit.bootstrap();
    const token = bootstrap.vault.wrapped_secret_id;
    const opened = await kit.vault.http.call("POST", "sys/wrapping/unwrap", { token });
    const { secret_id: secretId } = opened.body.data as { secret_id: string };
    const { exit, output } = await run(bootstrap);
    assert.equal(exit, 77);
    assert.match(output, /bootstrap_compromise/);
    for (const secret of [token, secretId, bootstrap.vault.role_id]) assert.ok(!output.includes(secret));
  });

  it("wants a login at all", async () => {
    const { exit, output } = await run(undefined);
    assert.equal(exit, 75);
    assert.match(output, /no Vault login/);
  });

  it("refuses a login that may do more than it must, and names where [A124]", async () => {
    const bootstrap = await kit.bootstrap();
    const hcl = [
      'path "*" { capabilities = ["create", "read", "update", "delete", "list", "sudo"] }',
      'path "ganglion/data/vaults/+/+" { capabilities = ["read"] }',
    ];
    const policy = { policy: hcl.join("\n") };
    const path = "auth/approle/role/ganglion-proxy";
    await kit.vault.http.call("PUT", "sys/policies/acl/too-wide", { token: kit.rootToken, body: policy });
    const policies = (names: string[]) =>
      kit.vault.http.call("POST", path, { token: kit.rootToken, body: { token_policies: names } });
    await policies(["ganglion-proxy", "too-wide"]);
    try {
      const { exit, output } = await run(bootstrap);
      assert.equal(exit, 77);
      assert.match(output, /sys\/policies\/acl\/ganglion-session/);
      assert.match(output, /without read/);
    } finally {
      await policies(["ganglion-proxy"]);
    }
  });

  it("comes back with 75 when Vault is away, for a fresh login", async () => {
    const bootstrap = await kit.bootstrap();
    const { exit } = await run({ vault: { ...bootstrap.vault, addr: "https://127.0.0.1:1" } });
    assert.equal(exit, 75);
  });

  for (const name of [
    "HTTPS_PROXY",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "VAULT_SKIP_VERIFY",
    "VAULT_TOKEN",
    "ALL_PROXY",
  ]) {
    it(`refuses ${name} in its environment, naming it and not its value [A021] [A022]`, async () => {
      const { exit, output } = await run(await kit.bootstrap(), { [name]: "value-of-it" });
      assert.equal(exit, 78);
      assert.match(output, new RegExp(name));
      assert.ok(!output.includes("value-of-it"));
    });
  }

  it("uses the keys that the first start made", async () => {
    const key = async () => {
      const { body } = await kit.vault.http.call("GET", "ganglion/data/proxy/mac-key", {
        token: kit.rootToken,
      });
      return JSON.stringify(body.data);
    };
    const before = await key();
    const { keyId } = await (await kit.vaults()).getSealingKey({});
    await kit.restartProxy();
    assert.equal((await (await kit.vaults()).getSealingKey({})).keyId, keyId);
    assert.equal(await key(), before);
  });

  it("applies each migration once, also when two start together", async () => {
    const connection = kit.postgres.connection("ganglion_owner");
    await Promise.all([migrate(connection), migrate(connection)]);
    const rows = await kit.sql("ganglion_owner", "SELECT name FROM proxy.migrations ORDER BY name");
    assert.deepEqual(
      rows.map(({ name }) => name),
      migrationNames(),
    );
    await kit.sql("ganglion_owner", "UPDATE proxy.migrations SET sha256 = 'x' WHERE name = $1", [
      migrationNames()[0],
    ]);
    await assert.rejects(migrate(connection), /was changed after it was applied/);
  });

  it("stops on SIGTERM with 0 and leaves no Vault token of its own behind [M06]", async () => {
    const upstream = "https://127.0.0.1:2/mcp";
    await kit.bound({ servers: [{ name: "demo", url: upstream, secret: "a-secret-for-nobody" }] });
    const live = () => kit.sql("ganglion_owner", "SELECT * FROM proxy.vault_tokens WHERE state <> 'revoked'");
    await until(async () => (await live()).length > 0, "a token at Vault");
    kit.service.process.kill("SIGTERM");
    assert.equal(await kit.service.exit, 0);
    assert.deepEqual(await live(), []);
  });
});
