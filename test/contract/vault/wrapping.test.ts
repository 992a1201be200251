import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { wrapSecretId } from "../../../services/cli/up/vault-bootstrap.ts";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

describe("wrapped logins", () => {
  let vault: SharedVault;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
  });

  const unwrap = (token: string) => rawCall(vault.address, "POST", "/v1/sys/wrapping/unwrap", { token });
  const lookUp = (token: string) =>
    rawCall(vault.address, "POST", "/v1/sys/wrapping/lookup", { json: { token } });

  it("a wrapped secret id opens once [A123]", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const first = await unwrap(login.wrapped_secret_id);
    assert.equal(first.status, 200);
    assert.equal(typeof first.body.data.secret_id, "string");
    assert.equal(first.body.data.secret_id_num_uses, 1);
    assert.equal(first.body.wrap_info, null);
    const second = await unwrap(login.wrapped_secret_id);
    assert.equal(second.status, 400);
    assert.deepEqual(second.body.errors, ["wrapping token is not valid or does not exist"]);
  });

  it("a secret id logs in once", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const { secret_id: secretId } = (await unwrap(login.wrapped_secret_id)).body.data;
    const json = { role_id: login.role_id, secret_id: secretId };
    const logIn = () => rawCall(vault.address, "POST", "/v1/auth/approle/login", { json });
    assert.equal((await logIn()).status, 200);
    const again = await logIn();
    assert.equal(again.status, 400);
    assert.deepEqual(again.body.errors, ["invalid role or secret ID"]);
    assert.ok(!again.text.includes(secretId));
  });

  it("a wrong half of a login is refused without saying which", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const { secret_id: secretId } = (await unwrap(login.wrapped_secret_id)).body.data;
    for (const json of [
      { role_id: "no-such-role", secret_id: secretId },
      { role_id: login.role_id, secret_id: "no-such-secret" },
    ]) {
      const reply = await rawCall(vault.address, "POST", "/v1/auth/approle/login", { json });
      assert.equal(reply.status, 400);
      assert.deepEqual(reply.body.errors, ["invalid role or secret ID"]);
    }
  });

  it("tells what it wraps without opening it", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const looked = await lookUp(login.wrapped_secret_id);
    assert.equal(looked.status, 200);
    assert.equal(looked.body.data.creation_path, "auth/approle/role/ganglion-proxy/secret-id");
    assert.equal(looked.body.data.creation_ttl, 300);
    assert.equal((await unwrap(login.wrapped_secret_id)).status, 200);
    assert.equal((await lookUp(login.wrapped_secret_id)).status, 400);
  });

  it("ends unopened when nobody comes", async () => {
    const reply = await rawCall(vault.address, "POST", "/v1/sys/wrapping/wrap", {
      token: vault.rootToken,
      json: { left: "alone" },
      headers: { "x-vault-wrap-ttl": "1s" },
    });
    const token = reply.body.wrap_info.token as string;
    assert.equal(reply.body.wrap_info.ttl, 1);
    while ((await lookUp(token)).status === 200) await wait(50);
    assert.equal((await unwrap(token)).status, 400);
  });

  it("a wrapping token opens itself and nothing else", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const reply = await rawCall(vault.address, "GET", "/v1/ganglion/data/vaults/vlt_x/vcrd_x", {
      token: login.wrapped_secret_id,
    });
    assert.equal(reply.status, 403);
  });

  it("somebody else's token may open it too, once", async () => {
    const wrapped = await rawCall(vault.address, "POST", "/v1/sys/wrapping/wrap", {
      token: vault.rootToken,
      json: { value: "inside" },
      headers: { "x-vault-wrap-ttl": "60" },
    });
    const json = { token: wrapped.body.wrap_info.token };
    const open = () =>
      rawCall(vault.address, "POST", "/v1/sys/wrapping/unwrap", { token: vault.rootToken, json });
    const opened = await open();
    assert.equal(opened.status, 200);
    assert.deepEqual(opened.body.data, { value: "inside" });
    assert.equal((await open()).status, 400);
  });

  it("is named once: in the header and in the body it is refused", async () => {
    const { wrapped_secret_id: token } = await wrapSecretId(vault.http, vault.supervisorToken);
    const reply = await rawCall(vault.address, "POST", "/v1/sys/wrapping/unwrap", { token, json: { token } });
    assert.ok(reply.status >= 400, `${reply.status}`);
    assert.equal(reply.body.data, undefined);
  });

  it("needs a token to open with, and a time to live to wrap with", async () => {
    const nothing = await rawCall(vault.address, "POST", "/v1/sys/wrapping/unwrap", { json: {} });
    assert.equal(nothing.status, 403);
    const unasked = await rawCall(vault.address, "POST", "/v1/sys/wrapping/wrap", {
      token: vault.rootToken,
      json: { a: "b" },
    });
    assert.equal(unasked.status, 400);
    assert.deepEqual(unasked.body.errors, ["endpoint requires response wrapping to be used"]);
    const bad = await rawCall(vault.address, "POST", "/v1/sys/wrapping/wrap", {
      token: vault.rootToken,
      json: { a: "b" },
      headers: { "x-vault-wrap-ttl": "bad" },
    });
    assert.equal(bad.status, 400);
  });
});
