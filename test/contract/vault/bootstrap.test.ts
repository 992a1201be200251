import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  bootstrapExternal,
  type EmbeddedVault,
  openEmbeddedVault,
  renewSupervisorToken,
  wrapSecretId,
} from "../../../services/cli/up/vault-bootstrap.ts";
import { VaultRefusal } from "../../../services/cli/up/vault-http.ts";
import { readVaultKeys, writeVaultKeys } from "../../../services/cli/up/vault-keys.ts";
import { generateRootToken } from "../../../services/cli/up/vault-root-token.ts";
import { rawCall } from "./kit/raw-call.ts";
import {
  initVault,
  isRealVault,
  type LocalVault,
  SLOW_MS,
  sharedVault,
  startVault,
} from "./kit/test-vault.ts";

describe("the bootstrap of an embedded vault", function () {
  this.timeout(180_000);
  let vault: LocalVault;
  let target: EmbeddedVault;
  let keysFile: string;

  before(async () => {
    vault = await startVault();
    keysFile = join(vault.folder, "keys", "vault.json");
    target = { http: vault.http, keysFile };
  });

  after(async () => {
    await vault.stop();
  });

  const lookup = async (token: string) =>
    (await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", { token })).status;

  it("makes keys, configures, and leaves no root token, also when asked twice at once", async () => {
    const [{ supervisorToken, warnings }, other] = await Promise.all([
      openEmbeddedVault(target),
      openEmbeddedVault(target),
    ]);
    assert.equal(other.supervisorToken, supervisorToken);
    assert.deepEqual(warnings, []);
    const keys = readVaultKeys(keysFile);
    assert.equal(keys?.supervisorToken, supervisorToken);
    assert.equal(keys?.rootToken, undefined);
    assert.equal(statSync(keysFile).mode & 0o777, 0o600);
    const found = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", {
      token: supervisorToken,
    });
    assert.deepEqual(found.body.data.policies, ["ganglion-supervisor"]);
    assert.equal(found.body.data.orphan, true);
    assert.equal(found.body.data.period, 768 * 3600);
    assert.ok(!readFileSync(keysFile, "utf8").includes("root"));
  });

  it("done again changes nothing", async () => {
    const before = readFileSync(keysFile, "utf8");
    const { supervisorToken } = await openEmbeddedVault(target);
    assert.equal(readFileSync(keysFile, "utf8"), before);
    assert.equal(await renewSupervisorToken(vault.http, supervisorToken), true);
  });

  it("opens the vault after it was killed, with the same token", async () => {
    const before = readVaultKeys(keysFile)?.supervisorToken;
    await vault.restart("SIGKILL");
    const { supervisorToken } = await openEmbeddedVault(target);
    assert.equal(supervisorToken, before);
    assert.equal(await lookup(supervisorToken), 200);
  });

  it("hands over a login that mcp-proxy can use, with the address and authority to use it at", async () => {
    const { supervisorToken } = await openEmbeddedVault(target);
    const login = await wrapSecretId(vault.http, supervisorToken);
    assert.deepEqual(Object.keys(login).sort(), ["addr", "ca_pem", "mount", "role_id", "wrapped_secret_id"]);
    assert.equal(login.addr, vault.address.addr);
    assert.equal(login.mount, "ganglion");
  });

  it("the supervisor's token reads no credential and no key", async () => {
    const { supervisorToken: token } = await openEmbeddedVault(target);
    for (const path of [
      "ganglion/data/vaults/vlt_a/vcrd_a",
      "ganglion/metadata/vaults/vlt_a/vcrd_a",
      "ganglion/metadata?list=true",
      "ganglion/data/proxy/sealing-key",
      "ganglion/data/proxy/mac-key",
      "sys/policies/acl/ganglion-proxy",
      "auth/approle/role/ganglion-proxy",
    ]) {
      assert.equal((await rawCall(vault.address, "GET", `/v1/${path}`, { token })).status, 403, path);
    }
  });

  it("brings an older configuration up to date and replaces the supervisor's token", async function () {
    if (vault.kind === "bao") this.skip();
    const keys = readVaultKeys(keysFile);
    assert.ok(keys?.supervisorToken);
    writeVaultKeys(keysFile, { ...keys, configuration: "older" });
    const { supervisorToken } = await openEmbeddedVault(target);
    assert.notEqual(supervisorToken, keys.supervisorToken);
    assert.equal(await lookup(keys.supervisorToken), 403);
    assert.equal(await lookup(supervisorToken), 200);
  });

  it("does not start over a vault whose key is lost", async () => {
    await assert.rejects(
      openEmbeddedVault({ ...target, keysFile: join(vault.folder, "nowhere.json") }),
      /its unseal key is gone/,
    );
    assert.ok(!existsSync(join(vault.folder, "nowhere.json")));
  });

  it("does not repeat a damaged key file in its error", async () => {
    const damaged = join(vault.folder, "damaged.json");
    writeFileSync(damaged, '{"unsealKey": "c2VjcmV0');
    await assert.rejects(openEmbeddedVault({ ...target, keysFile: damaged }), (error: Error) => {
      assert.match(error.message, /not readable as JSON/);
      assert.ok(!`${error.message}${String(error.cause)}`.includes("c2VjcmV0"));
      return true;
    });
  });
});

describe("a server that makes no root tokens", () => {
  it("is told apart, with what to do about it", async () => {
    // OpenBao answers so unless it is told otherwise.
    const http = { call: () => Promise.reject(new VaultRefusal("sys/generate-root/attempt", 405, [])) };
    await assert.rejects(generateRootToken(http, "key"), /makes no root tokens: give a token/);
    const other = { call: () => Promise.reject(new VaultRefusal("sys/generate-root/attempt", 503, [])) };
    await assert.rejects(generateRootToken(other, "key"), VaultRefusal);
  });
});

describe("a bootstrap that a crash cut short", function () {
  this.timeout(180_000);

  it("goes on with the root token that it still has, and then has none", async () => {
    const vault = await startVault();
    try {
      const keysFile = join(vault.folder, "keys.json");
      // As if the process had died right after it had made its keys.
      writeVaultKeys(keysFile, await initVault(vault.http));
      const { supervisorToken } = await openEmbeddedVault({ http: vault.http, keysFile });
      assert.ok(await renewSupervisorToken(vault.http, supervisorToken));
      assert.equal(readVaultKeys(keysFile)?.rootToken, undefined);
    } finally {
      await vault.stop();
    }
  });
});

describe("the bootstrap of somebody else's Vault", () => {
  it("configures it with an operator's token and gives the supervisor's", async function () {
    this.timeout(SLOW_MS);
    const vault = await sharedVault();
    const { supervisorToken, warnings } = await bootstrapExternal({
      ...vault.address,
      token: vault.rootToken,
    });
    assert.deepEqual(warnings, []);
    const login = await wrapSecretId(vault.http, supervisorToken);
    assert.equal(login.addr, vault.address.addr);
    const made = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", {
      token: supervisorToken,
    });
    assert.equal(made.body.data.period, 24 * 3600);
    assert.deepEqual(made.body.data.policies, ["ganglion-supervisor"]);
    const own = await rawCall(vault.address, "GET", "/v1/auth/token/lookup-self", { token: vault.rootToken });
    assert.equal(own.status, 200);
  });

  it("warns when no audit device is on", async function () {
    if (isRealVault()) this.skip();
    const vault = await startVault();
    try {
      const { body } = await vault.http.call("PUT", "sys/init", {
        body: { secret_shares: 1, secret_threshold: 1 },
      });
      await vault.http.call("PUT", "sys/unseal", { body: { key: (body.keys as string[])[0] } });
      const token = body.root_token as string;
      const { warnings } = await bootstrapExternal({ ...vault.address, token });
      assert.match(warnings.join(), /no audit device is on/);
    } finally {
      await vault.stop();
    }
  });
});
