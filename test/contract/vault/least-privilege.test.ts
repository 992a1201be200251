import assert from "node:assert/strict";
import { configureVault } from "../../../services/cli/up/vault-configuration.ts";
import { createSessionToken, loginAsProxy, newSecret, newVaultId } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

/** What each identity may do where; anything else must be "deny". */
const PATHS = {
  credential: (vaultId: string) => `ganglion/data/vaults/${vaultId}/vcrd_1`,
  credentialMetadata: (vaultId: string) => `ganglion/metadata/vaults/${vaultId}/vcrd_1`,
  credentialDestroy: (vaultId: string) => `ganglion/destroy/vaults/${vaultId}/vcrd_1`,
  credentialUndelete: (vaultId: string) => `ganglion/undelete/vaults/${vaultId}/vcrd_1`,
  vaultFolder: (vaultId: string) => `ganglion/metadata/vaults/${vaultId}`,
  sealingKey: () => "ganglion/data/proxy/sealing-key",
  mountConfig: () => "ganglion/config",
  policy: () => "sys/policies/acl/ganglion-session",
  oldPolicy: () => "sys/policy/ganglion-session",
  mounts: () => "sys/mounts",
  newMount: () => "sys/mounts/other",
  authMethods: () => "sys/auth",
  audit: () => "sys/audit",
  seal: () => "sys/seal",
  raw: () => "sys/raw/core",
  entity: () => "identity/entity",
  namedEntity: (vaultId: string) => `identity/entity/name/${vaultId}`,
  alias: () => "identity/entity-alias",
  createToken: () => "auth/token/create",
  createOrphan: () => "auth/token/create-orphan",
  createSessionToken: () => "auth/token/create/ganglion-session",
  tokenRole: () => "auth/token/roles/ganglion-session",
  revokeAccessor: () => "auth/token/revoke-accessor",
  lookupAccessor: () => "auth/token/lookup-accessor",
  accessors: () => "auth/token/accessors",
  proxyRole: () => "auth/approle/role/ganglion-proxy",
  proxyRoleId: () => "auth/approle/role/ganglion-proxy/role-id",
  proxySecretId: () => "auth/approle/role/ganglion-proxy/secret-id",
  cubbyhole: () => "cubbyhole/x",
  wrap: () => "sys/wrapping/wrap",
};
type Place = keyof typeof PATHS;

describe("what each identity may do at Vault", () => {
  let vault: SharedVault;
  let proxy: string;
  const ownId = newVaultId();
  // Begins with the whole of the first id: a glob that is not closed by a slash would cover it.
  const siblingId = `${ownId}b`;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
    proxy = (await loginAsProxy(vault)).client_token;
  });

  async function capabilities(token: string, path: string): Promise<string[]> {
    // Asked with the root token, since not every policy lets its holder ask.
    const body = { token, paths: [path] };
    const reply = await vault.http.call("POST", "sys/capabilities", {
      token: vault.rootToken,
      body,
      accept: [404, 405],
    });
    if (reply.status === 200)
      return ((reply.body.data ?? reply.body) as Record<string, string[]>)[path] ?? [];
    throw new Error(`sys/capabilities answers ${reply.status}`);
  }

  async function expectOnly(token: string, vaultId: string, granted: Partial<Record<Place, string[]>>) {
    for (const place of Object.keys(PATHS) as Place[]) {
      const path = PATHS[place](vaultId);
      const found = (await capabilities(token, path)).sort();
      assert.deepEqual(found, (granted[place] ?? ["deny"]).sort(), `${place}: ${path}`);
    }
  }

  async function status(token: string, method: string, path: string, json?: unknown): Promise<number> {
    return (await rawCall(vault.address, method, `/v1/${path}`, { token, json })).status;
  }

  it("mcp-proxy writes credentials and makes session tokens, and nothing else [A124]", async () => {
    await expectOnly(proxy, ownId, {
      credential: ["create", "patch", "update"],
      credentialMetadata: ["delete", "read"],
      credentialDestroy: ["update"],
      sealingKey: ["create", "read"],
      createSessionToken: ["create", "update"],
      revokeAccessor: ["update"],
      wrap: ["update"],
    });
  });

  it("a session's token reads its own vault and nothing else", async () => {
    const session = await createSessionToken(vault.http, proxy, ownId);
    assert.deepEqual(session.policies, ["ganglion-session"]);
    await expectOnly(session.client_token, ownId, { credential: ["read"] });
    await expectOnly(session.client_token, siblingId, {});
  });

  it("the supervisor hands over wrapped logins and nothing else", async () => {
    await expectOnly(vault.supervisorToken, ownId, {
      proxyRoleId: ["read"],
      proxySecretId: ["create", "update"],
    });
  });

  it("mcp-proxy cannot read what it has written, a session's token can", async () => {
    const secret = newSecret();
    const path = PATHS.credential(ownId);
    assert.equal(await status(proxy, "POST", path, { data: { secret }, options: { cas: 0 } }), 200);
    assert.equal(await status(proxy, "GET", path), 403);
    const patch = await rawCall(vault.address, "PATCH", `/v1/${path}`, {
      token: proxy,
      json: { data: { client_secret: newSecret() } },
      headers: { "content-type": "application/merge-patch+json" },
    });
    assert.equal(patch.status, 200);
    assert.equal(await status(proxy, "GET", `ganglion/metadata/vaults/${ownId}?list=true`), 403);
    const session = (await createSessionToken(vault.http, proxy, ownId)).client_token;
    const reply = await rawCall(vault.address, "GET", `/v1/${path}`, { token: session });
    assert.equal(reply.status, 200);
    assert.equal(reply.body.data.data.secret, secret);
    assert.ok(reply.body.data.data.client_secret);
  });

  it("a session's token reads no sibling, not even one whose id begins with its own", async () => {
    const path = PATHS.credential(siblingId);
    assert.equal(await status(proxy, "POST", path, { data: { secret: newSecret() } }), 200);
    const own = (await createSessionToken(vault.http, proxy, ownId)).client_token;
    const sibling = (await createSessionToken(vault.http, proxy, siblingId)).client_token;
    assert.equal(await status(own, "GET", path), 403);
    assert.equal(await status(sibling, "GET", path), 200);
    assert.equal(await status(sibling, "GET", PATHS.credential(ownId)), 403);
  });

  it("a session's token changes nothing", async () => {
    const session = (await createSessionToken(vault.http, proxy, ownId)).client_token;
    const path = PATHS.credential(ownId);
    assert.equal(await status(session, "POST", path, { data: { secret: "x" } }), 403);
    assert.equal(await status(session, "DELETE", path), 403);
    const patch = await rawCall(vault.address, "PATCH", `/v1/${path}`, {
      token: session,
      json: { data: { secret: "x" } },
      headers: { "content-type": "application/merge-patch+json" },
    });
    assert.equal(patch.status, 403);
    assert.equal(await status(session, "POST", "auth/token/create", {}), 403);
    assert.equal(await status(session, "PUT", "sys/policies/acl/x", { policy: 'path "*" {}' }), 403);
  });

  it("mcp-proxy cannot widen a session's token", async () => {
    const create = (json: unknown) => status(proxy, "POST", "auth/token/create/ganglion-session", json);
    assert.equal(await create({ entity_alias: ownId, ttl: "1m" }), 200);
    assert.equal(await create({ entity_alias: ownId, policies: ["ganglion-proxy"] }), 403);
    assert.equal(await create({ entity_alias: ownId, policies: ["root"] }), 403);
    assert.equal(await create({ entity_alias: ownId, no_parent: true }), 403);
    assert.equal(await create({ entity_alias: ownId, period: "1h" }), 403);
    assert.equal(await create({ entity_alias: ownId, id: "chosen" }), 403);
    assert.equal(await create({ entity_alias: "admin" }), 403);
    assert.equal(await create({ ttl: "1m" }), 403);
    assert.equal(await create({}), 403);
  });

  it("the role itself refuses aliases and policies beyond it, whoever asks", async () => {
    const create = (json: unknown) =>
      rawCall(vault.address, "POST", "/v1/auth/token/create/ganglion-session", {
        token: vault.rootToken,
        json,
      });
    const alias = await create({ entity_alias: "admin" });
    assert.equal(alias.status, 400);
    assert.deepEqual(alias.body.errors, ["invalid 'entity_alias' value"]);
    const policies = await create({ entity_alias: ownId, policies: ["ganglion-proxy"] });
    assert.equal(policies.status, 400);
    assert.match(policies.body.errors[0], /must be subset of the role's allowed policies/);
  });

  it("mcp-proxy makes its keys once and cannot replace them", async () => {
    const path = `ganglion/data/proxy/${newVaultId()}`;
    assert.equal(await status(proxy, "POST", path, { data: { key: "a" }, options: { cas: 0 } }), 200);
    assert.equal(await status(proxy, "POST", path, { data: { key: "b" } }), 403);
    const reply = await rawCall(vault.address, "GET", `/v1/${path}`, { token: proxy });
    assert.equal(reply.body.data.data.key, "a");
  });

  it("mcp-proxy and the supervisor write neither policies nor anything below sys/", async () => {
    for (const token of [proxy, vault.supervisorToken]) {
      assert.equal(
        await status(token, "PUT", "sys/policies/acl/ganglion-session", { policy: 'path "*" {}' }),
        403,
      );
      assert.equal(await status(token, "POST", "sys/mounts/x", { type: "kv" }), 403);
      assert.equal(await status(token, "GET", "sys/mounts"), 403);
      assert.equal(await status(token, "PUT", "sys/audit/x", { type: "file" }), 403);
      assert.equal(await status(token, "DELETE", "sys/audit/ganglion"), 403);
      assert.equal(await status(token, "PUT", "sys/seal"), 403);
    }
    assert.equal((await rawCall(vault.address, "GET", "/v1/sys/health")).status, 200);
  });

  it("the supervisor gets no secret id that it could use itself", async () => {
    const path = "auth/approle/role/ganglion-proxy/secret-id";
    assert.equal(await status(vault.supervisorToken, "POST", path, {}), 403);
    const wrap = (ttl: string) =>
      rawCall(vault.address, "POST", `/v1/${path}`, {
        token: vault.supervisorToken,
        json: {},
        headers: { "x-vault-wrap-ttl": ttl },
      });
    assert.equal((await wrap("1h")).status, 403);
    const wrapped = await wrap("60s");
    assert.equal(wrapped.status, 200);
    assert.equal(wrapped.body.data, null);
    assert.ok(!wrapped.text.includes('secret_id"'));
  });

  it("no token and a token that never was are refused with Vault's words", async () => {
    for (const token of [undefined, "hvs.nothing"]) {
      const reply = await rawCall(
        vault.address,
        "GET",
        `/v1/${PATHS.credential(ownId)}`,
        token ? { token } : {},
      );
      assert.equal(reply.status, 403);
      assert.match(reply.body.errors.join(), /permission denied/);
      assert.ok(!reply.text.includes("hvs.nothing"));
    }
  });

  it("writing the configuration again changes nothing", async () => {
    await configureVault(vault.http, vault.rootToken);
    const session = (await createSessionToken(vault.http, proxy, ownId)).client_token;
    assert.equal(await status(session, "GET", PATHS.credential(ownId)), 200);
    assert.equal(await status(proxy, "GET", PATHS.credential(ownId)), 403);
  });
});
