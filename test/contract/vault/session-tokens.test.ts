import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { createSessionToken, type Issued, loginAsProxy, newSecret, newVaultId } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

describe("Vault tokens of sessions", () => {
  let vault: SharedVault;
  let proxy: Issued;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
    proxy = await loginAsProxy(vault);
  });

  const call = (token: string, method: string, path: string, json?: unknown) =>
    rawCall(vault.address, method, `/v1/${path}`, { token, json });
  const lookup = (token: string) => call(token, "GET", "auth/token/lookup-self");
  const root = (method: string, path: string, json?: unknown) => call(vault.rootToken, method, path, json);

  it("name the session, so that Vault's own audit log does too", async () => {
    const session = await createSessionToken(vault.http, proxy.client_token, newVaultId(), "sesn_42");
    assert.deepEqual(session.metadata, { session: "sesn_42" });
    const { body } = await lookup(session.client_token);
    assert.deepEqual(body.data.meta, { session: "sesn_42" });
    assert.equal(body.data.role, "ganglion-session");
    assert.equal(body.data.path, "auth/token/create/ganglion-session");
    assert.equal(body.data.orphan, true);
    assert.equal(body.data.renewable, true);
    assert.equal(body.data.creation_ttl, 900);
    assert.ok(body.data.ttl > 890 && body.data.ttl <= 900);
    assert.equal(body.data.entity_id, session.entity_id);
  });

  it("belong to one entity for each vault", async () => {
    const vaultId = newVaultId();
    const one = await createSessionToken(vault.http, proxy.client_token, vaultId);
    const two = await createSessionToken(vault.http, proxy.client_token, vaultId);
    const other = await createSessionToken(vault.http, proxy.client_token, newVaultId());
    assert.notEqual(one.entity_id, "");
    assert.equal(one.entity_id, two.entity_id);
    assert.notEqual(one.entity_id, other.entity_id);
  });

  it("outlive the login that made them", async () => {
    const login = await loginAsProxy(vault);
    const session = await createSessionToken(vault.http, login.client_token, newVaultId());
    assert.equal(session.orphan, true);
    await root("POST", "auth/token/revoke", { token: login.client_token });
    assert.equal((await lookup(login.client_token)).status, 403);
    assert.equal((await lookup(session.client_token)).status, 200);
  });

  it("a token that is no orphan dies with its parent, at any depth", async () => {
    const policy = 'path "auth/token/create" { capabilities = ["update"] }';
    await root("PUT", "sys/policies/acl/ganglion-test-parent", { policy });
    const json = { policies: ["default", "ganglion-test-parent"], ttl: "5m" };
    const parent = (await root("POST", "auth/token/create", json)).body.auth;
    const child = (await call(parent.client_token, "POST", "auth/token/create", json)).body.auth;
    const grandchild = (await call(child.client_token, "POST", "auth/token/create", json)).body.auth;
    assert.equal(grandchild.orphan, false);
    assert.equal((await lookup(grandchild.client_token)).status, 200);
    await root("POST", "auth/token/revoke-accessor", { accessor: parent.accessor });
    assert.equal((await lookup(child.client_token)).status, 403);
    assert.equal((await lookup(grandchild.client_token)).status, 403);
    await root("DELETE", "sys/policies/acl/ganglion-test-parent");
  });

  it("are refused from the first use after they were revoked by accessor", async () => {
    const vaultId = newVaultId();
    const path = `ganglion/data/vaults/${vaultId}/vcrd_1`;
    await call(proxy.client_token, "POST", path, { data: { secret: newSecret() } });
    const session = await createSessionToken(vault.http, proxy.client_token, vaultId);
    assert.equal((await call(session.client_token, "GET", path)).status, 200);
    const revoke = () =>
      call(proxy.client_token, "POST", "auth/token/revoke-accessor", { accessor: session.accessor });
    assert.equal((await revoke()).status, 204);
    assert.equal((await call(session.client_token, "GET", path)).status, 403);
  });

  it("revoking an accessor that is gone is an answer, not an internal error [A125]", async () => {
    const accessor = "no-such-accessor";
    const reply = await call(proxy.client_token, "POST", "auth/token/revoke-accessor", { accessor });
    // OpenBao answers 200 with a warning, Vault 400: either way the queue of revocations can go on.
    assert.ok([200, 400].includes(reply.status), `${reply.status} ${reply.text}`);
    const missing = await call(proxy.client_token, "POST", "auth/token/revoke-accessor", {});
    assert.equal(missing.status, 400);
    assert.match(missing.body.errors[0], /missing accessor/);
  });

  it("renew themselves, and live no longer than the role allows", async () => {
    const json = { entity_alias: newVaultId(), ttl: "48h" };
    const made = await call(proxy.client_token, "POST", "auth/token/create/ganglion-session", json);
    assert.equal(made.body.auth.lease_duration, 24 * 3600);
    assert.match(made.body.warnings.join(), /exceeded the effective max_ttl/);
    const session = await createSessionToken(vault.http, proxy.client_token, newVaultId());
    const renewed = await call(session.client_token, "POST", "auth/token/renew-self", { increment: "48h" });
    assert.equal(renewed.status, 200);
    assert.equal(renewed.body.auth.client_token, session.client_token);
    assert.ok(renewed.body.auth.lease_duration <= 24 * 3600);
  });

  it("end by themselves", async () => {
    const json = { entity_alias: newVaultId(), ttl: "1s" };
    const made = await call(proxy.client_token, "POST", "auth/token/create/ganglion-session", json);
    const token = made.body.auth.client_token as string;
    assert.equal(made.body.auth.lease_duration, 1);
    // One that never ended would run into the test's time limit.
    while ((await lookup(token)).status === 200) await wait(50);
    assert.equal((await lookup(token)).status, 403);
  });

  it("mcp-proxy's login renews itself for as long as it is used", async () => {
    assert.equal(proxy.lease_duration, 3600);
    assert.deepEqual(proxy.policies, ["ganglion-proxy"]);
    assert.deepEqual(proxy.metadata, { role_name: "ganglion-proxy" });
    const renewed = await call(proxy.client_token, "POST", "auth/token/renew-self", {});
    assert.equal(renewed.status, 200);
    assert.equal(renewed.body.auth.lease_duration, 3600);
    const { body } = await lookup(proxy.client_token);
    assert.equal(body.data.period, 3600);
    assert.equal(body.data.display_name, "approle");
  });

  it("a token with a number of uses is gone after them", async () => {
    const made = await root("POST", "auth/token/create", { policies: ["default"], num_uses: 2, ttl: "5m" });
    const token = made.body.auth.client_token as string;
    assert.equal((await lookup(token)).body.data.num_uses, 1);
    assert.equal((await lookup(token)).status, 200);
    assert.equal((await lookup(token)).status, 403);
  });

  it("an entity that was disabled takes its tokens with it", async () => {
    const session = await createSessionToken(vault.http, proxy.client_token, newVaultId());
    const path = `identity/entity/id/${session.entity_id}`;
    assert.ok([200, 204].includes((await root("POST", path, { disabled: true })).status));
    assert.equal((await lookup(session.client_token)).status, 403);
    await root("POST", path, { disabled: false });
    assert.equal((await lookup(session.client_token)).status, 200);
  });
});
