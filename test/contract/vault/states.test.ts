import assert from "node:assert/strict";
import { configureVault } from "../../../services/cli/up/vault-configuration.ts";
import { rawCall } from "./kit/raw-call.ts";
import { becomesActive, initVault, type LocalVault, startVault } from "./kit/test-vault.ts";

describe("the states of a vault", function () {
  this.timeout(120_000);
  let vault: LocalVault;
  let keys: { unsealKey: string; rootToken: string };

  before(async () => {
    vault = await startVault();
  });

  after(async () => {
    await vault.stop();
  });

  const get = (path: string, token?: string) =>
    rawCall(vault.address, "GET", `/v1/${path}`, token === undefined ? {} : { token });
  const put = (path: string, json: unknown, token?: string) =>
    rawCall(vault.address, "PUT", `/v1/${path}`, token === undefined ? { json } : { json, token });

  it("before its keys were made: 501, and nothing works", async () => {
    const health = await get("sys/health");
    assert.equal(health.status, 501);
    assert.equal(health.body.initialized, false);
    assert.equal(health.body.sealed, true);
    assert.equal((await get("sys/health?uninitcode=299")).status, 299);
    assert.deepEqual((await get("sys/init")).body, { initialized: false });
    const status = (await get("sys/seal-status")).body;
    assert.deepEqual([status.initialized, status.sealed, status.type], [false, true, "shamir"]);
    assert.equal((await put("sys/unseal", { key: "a".repeat(44) })).status, 400);
  });

  it("keys are made once", async () => {
    keys = await initVault(vault.http);
    assert.equal(Buffer.from(keys.unsealKey, "base64").length, 32);
    const again = await put("sys/init", { secret_shares: 1, secret_threshold: 1 });
    assert.equal(again.status, 400);
    assert.deepEqual(again.body.errors, ["Vault is already initialized"]);
  });

  it("active: 200 [B117]", async () => {
    const health = await get("sys/health");
    assert.equal(health.status, 200);
    assert.deepEqual(
      [health.body.initialized, health.body.sealed, health.body.standby],
      [true, false, false],
    );
    assert.equal((await get("sys/health?activecode=204")).status, 204);
    assert.equal((await rawCall(vault.address, "HEAD", "/v1/sys/health")).status, 200);
    const wrong = await rawCall(vault.address, "POST", "/v1/sys/health");
    assert.equal(wrong.status, 405);
  });

  it("after a crash it is sealed: 503 for everything, with Vault's words [A116]", async () => {
    await configureVault(vault.http, keys.rootToken);
    await put("ganglion/data/vaults/vlt_a/vcrd_a", { data: { secret: "kept" } }, keys.rootToken);
    await vault.restart("SIGKILL");
    const health = await get("sys/health");
    assert.equal(health.status, 503);
    assert.deepEqual([health.body.initialized, health.body.sealed], [true, true]);
    assert.equal((await get("sys/health?sealedcode=299")).status, 299);
    for (const path of ["ganglion/data/vaults/vlt_a/vcrd_a", "sys/mounts", "auth/token/lookup-self"]) {
      const reply = await get(path, keys.rootToken);
      assert.equal(reply.status, 503);
      assert.deepEqual(reply.body.errors, ["Vault is sealed"]);
    }
    const login = await rawCall(vault.address, "POST", "/v1/auth/approle/login", { json: {} });
    assert.equal(login.status, 503);
  });

  it("a wrong key does not open it, and a missing one is named", async () => {
    const wrong = await put("sys/unseal", { key: Buffer.alloc(32, 7).toString("base64") });
    assert.equal(wrong.status, 400);
    assert.match(wrong.body.errors[0], /message authentication failed/);
    assert.equal((await put("sys/unseal", {})).status, 400);
    assert.equal((await get("sys/seal-status")).body.sealed, true);
  });

  it("the key opens it, and everything is there again", async () => {
    const opened = await put("sys/unseal", { key: keys.unsealKey });
    assert.equal(opened.status, 200);
    assert.equal(opened.body.sealed, false);
    await becomesActive(vault.http);
    const reply = await get("ganglion/data/vaults/vlt_a/vcrd_a", keys.rootToken);
    assert.deepEqual(reply.body.data.data, { secret: "kept" });
  });

  it("an operator seals it, nobody else does", async () => {
    assert.equal((await put("sys/seal", {})).status, 403);
    assert.equal((await put("sys/seal", {}, "hvs.nothing")).status, 403);
    assert.equal((await put("sys/seal", {}, keys.rootToken)).status, 204);
    assert.equal((await get("sys/health")).status, 503);
    await put("sys/unseal", { key: Buffer.from(keys.unsealKey, "base64").toString("hex") });
    await becomesActive(vault.http);
  });

  it("stops cleanly on SIGTERM", async () => {
    await vault.restart("SIGTERM");
    assert.equal((await get("sys/health")).status, 503);
  });
});
