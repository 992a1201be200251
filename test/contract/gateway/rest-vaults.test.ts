import assert from "node:assert/strict";
import type Anthropic from "@anthropic-ai/sdk";
import type { ProxyKit } from "../mcp-proxy/proxy-kit.ts";
import { RestVaults, refusal, SERVER } from "./rest-vaults-kit.ts";

describe("vaults over REST, with the official SDK", () => {
  let rest: RestVaults;
  let kit: ProxyKit;
  let vaults: Anthropic["beta"]["vaults"];

  before(async function () {
    this.timeout(120_000);
    rest = await RestVaults.start();
    ({ kit, vaults } = rest);
  });

  after(() => rest?.stop());

  const secret = () => rest.secret();
  const makeVault = () => rest.makeVault();
  const bearer = (url?: string) => rest.bearer(url);
  const oauth = () => rest.oauth();
  const variable = () => rest.variable();
  const stored = (vaultId: string, id: string) => rest.stored(vaultId, id);

  it("makes, shows, changes, lists, archives and deletes vaults", async () => {
    const made = await vaults.create({ display_name: "one", metadata: { a: "1", b: "2" } });
    assert.match(made.id, /^vlt_/);
    assert.deepEqual(
      { ...made, id: "", created_at: "", updated_at: "" },
      {
        ...{ id: "", type: "vault", display_name: "one", metadata: { a: "1", b: "2" } },
        ...{ created_at: "", updated_at: "", archived_at: null },
      },
    );
    assert.deepEqual(await vaults.retrieve(made.id), made);
    const changed = await vaults.update(made.id, { display_name: "two", metadata: { a: null, c: "3" } });
    assert.equal(changed.display_name, "two");
    assert.deepEqual(changed.metadata, { b: "2", c: "3" });
    assert.deepEqual((await vaults.update(made.id, { metadata: { d: "4" } })).display_name, "two");
    const archived = await vaults.archive(made.id);
    assert.ok(archived.archived_at);
    assert.deepEqual((await vaults.archive(made.id)).archived_at, archived.archived_at);
    const ids = async (more: object) => {
      const found: string[] = [];
      for await (const one of vaults.list({ limit: 1, ...more })) found.push(one.id);
      return found;
    };
    assert.ok(!(await ids({})).includes(made.id));
    assert.ok((await ids({ include_archived: true })).includes(made.id));
    assert.equal((await refusal(vaults.update(made.id, { display_name: "three" }))).status, 400);
    assert.deepEqual(await vaults.delete(made.id), { id: made.id, type: "vault_deleted" });
    assert.equal((await refusal(vaults.retrieve(made.id))).status, 404);
  });

  it("stores, rotates and purges a bearer token", async () => {
    const vaultId = await makeVault();
    const auth = bearer();
    const made = await vaults.credentials.create(vaultId, { auth, display_name: "a", metadata: { k: "v" } });
    assert.deepEqual(made.auth, { type: "static_bearer", mcp_server_url: SERVER });
    assert.equal(made.display_name, "a");
    assert.deepEqual(await stored(vaultId, made.id), { secret: auth.token });
    const next = secret();
    const rotate = { vault_id: vaultId, auth: { type: "static_bearer" as const, token: next } };
    const rotated = await vaults.credentials.update(made.id, { ...rotate, metadata: { k: null, l: "w" } });
    assert.deepEqual(rotated.metadata, { l: "w" });
    assert.deepEqual(await stored(vaultId, made.id), { secret: next });
    const named = await vaults.credentials.update(made.id, { vault_id: vaultId, display_name: null });
    assert.equal(named.display_name, null);
    const archived = await vaults.credentials.archive(made.id, { vault_id: vaultId });
    assert.ok(archived.archived_at);
    assert.equal(await stored(vaultId, made.id), undefined);
    assert.equal((await refusal(vaults.credentials.update(made.id, rotate))).status, 400);
    assert.deepEqual(await vaults.credentials.retrieve(made.id, { vault_id: vaultId }), archived);
    // The key is free again.
    const again = await vaults.credentials.create(vaultId, { auth: bearer() });
    const gone = await vaults.credentials.delete(again.id, { vault_id: vaultId });
    assert.deepEqual(gone, { id: again.id, type: "vault_credential_deleted" });
    assert.equal(await stored(vaultId, again.id), undefined);
    const absent = vaults.credentials.retrieve(again.id, { vault_id: vaultId });
    assert.equal((await refusal(absent)).status, 404);
  });

  it("stores OAuth tokens and changes one of them without knowing the others", async () => {
    const vaultId = await makeVault();
    const auth = oauth();
    const { id, auth: shown } = await vaults.credentials.create(vaultId, { auth });
    const { refresh_token: refreshToken, token_endpoint_auth: how, ...settings } = auth.refresh;
    assert.deepEqual(shown, {
      ...{ type: "mcp_oauth", mcp_server_url: SERVER, expires_at: auth.expires_at },
      refresh: { ...settings, token_endpoint_auth: { type: "client_secret_post" } },
    });
    const document = {
      ...{ secret: auth.access_token, refresh_token: refreshToken, client_secret: how.client_secret },
      expires_at: auth.expires_at,
    };
    assert.deepEqual(await stored(vaultId, id), document);
    const clientSecret = secret();
    // The other type is named: the stored one stays.
    const token_endpoint_auth = { type: "client_secret_basic" as const, client_secret: clientSecret };
    const refresh = { scope: "", token_endpoint_auth };
    const changed = await vaults.credentials.update(id, {
      vault_id: vaultId,
      auth: { type: "mcp_oauth", refresh },
    });
    assert.ok(changed.auth.type === "mcp_oauth");
    assert.equal(changed.auth.refresh?.scope, null);
    assert.equal(changed.auth.refresh?.token_endpoint_auth.type, "client_secret_post");
    assert.equal(changed.auth.expires_at, auth.expires_at);
    assert.deepEqual(await stored(vaultId, id), { ...document, client_secret: clientSecret });
    const token = secret();
    await vaults.credentials.update(id, {
      vault_id: vaultId,
      auth: { type: "mcp_oauth", access_token: token },
    });
    const after = { ...document, client_secret: clientSecret, secret: token };
    assert.deepEqual(await stored(vaultId, id), after, "a new token keeps the old expiry");
  });

  it("stores a variable; hosts are replaced as a whole, places one by one", async () => {
    const vaultId = await makeVault();
    const auth = variable();
    const { id, auth: shown } = await vaults.credentials.create(vaultId, { auth });
    assert.deepEqual(shown, {
      ...{ type: "environment_variable", secret_name: "SERVICE_TOKEN", networking: auth.networking },
      injection_location: { header: true, body: true },
    });
    assert.deepEqual(await stored(vaultId, id), { secret: auth.secret_value });
    const change = (more: object) =>
      vaults.credentials.update(id, { vault_id: vaultId, auth: { type: "environment_variable", ...more } });
    const one = await change({ injection_location: { body: false } });
    assert.ok(one.auth.type === "environment_variable");
    assert.deepEqual(one.auth.injection_location, { header: true, body: false });
    assert.deepEqual(one.auth.networking, auth.networking);
    const two = await change({ networking: { type: "unrestricted" } });
    assert.ok(two.auth.type === "environment_variable");
    assert.deepEqual(two.auth.networking, { type: "unrestricted" });
    assert.deepEqual(two.auth.injection_location, { header: true, body: false });
    for (const places of [{ header: false }, null, { header: null }]) {
      assert.equal((await refusal(change({ injection_location: places }))).status, 400);
    }
    assert.deepEqual(await stored(vaultId, id), { secret: auth.secret_value });
  });

  it("puts only the named place on when one is named", async () => {
    const auth = { ...variable(), injection_location: { header: true } };
    const made = await vaults.credentials.create(await makeVault(), { auth });
    assert.ok(made.auth.type === "environment_variable");
    assert.deepEqual(made.auth.injection_location, { header: true, body: false });
  });

  it("keeps the kind and the key of a credential", async () => {
    const vaultId = await makeVault();
    const { id } = await vaults.credentials.create(vaultId, { auth: bearer() });
    const change = (auth: object) => vaults.credentials.update(id, { vault_id: vaultId, auth } as never);
    const other = { type: "mcp_oauth", access_token: secret() };
    assert.match((await refusal(change(other))).message, /auth\.type/);
    const moved = { type: "static_bearer", mcp_server_url: "https://evil.test/" };
    assert.match((await refusal(change(moved))).message, /mcp_server_url/);
  });

  it("answers 409 to a second active one with the same key, whichever kind, and is not asked again", async () => {
    const vaultId = await makeVault();
    await vaults.credentials.create(vaultId, { auth: bearer() });
    const before = rest.seen.length;
    for (const auth of [bearer("HTTPS://mcp.example.test:443/mcp/"), oauth()]) {
      const error = await refusal(vaults.credentials.create(vaultId, { auth }));
      assert.equal(error.status, 409);
      assert.equal(error.type, "conflict_error");
    }
    assert.equal(rest.seen.length - before, 4, "two answers, each with its headers");
    await vaults.credentials.create(vaultId, { auth: variable() });
    assert.equal((await refusal(vaults.credentials.create(vaultId, { auth: variable() }))).status, 409);
  });

  it("takes 20 credentials in a vault, not more, and one more when one is archived", async function () {
    this.timeout(60_000);
    const vaultId = await makeVault();
    const at = (index: number) => ({ auth: bearer(`https://mcp.example.test/${index}`) });
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, i) => vaults.credentials.create(vaultId, at(i))),
    );
    const error = await refusal(vaults.credentials.create(vaultId, at(20)));
    assert.equal(error.status, 400);
    assert.equal(error.errorCode, "credential_limit");
    await vaults.credentials.archive(made[0]?.id ?? "", { vault_id: vaultId });
    await vaults.credentials.create(vaultId, at(20));
  });

  it("archives and deletes a vault with all that is in it", async () => {
    const vaultId = await makeVault();
    const auths = [bearer(), variable()];
    const made = await Promise.all(auths.map((auth) => vaults.credentials.create(vaultId, { auth })));
    await vaults.archive(vaultId);
    for (const { id } of made) {
      assert.equal(await stored(vaultId, id), undefined);
      assert.ok((await vaults.credentials.retrieve(id, { vault_id: vaultId })).archived_at);
    }
    assert.equal((await refusal(vaults.credentials.create(vaultId, { auth: bearer() }))).status, 400);
    const other = await makeVault();
    const { id } = await vaults.credentials.create(other, { auth: bearer() });
    await vaults.delete(other);
    assert.equal(await stored(other, id), undefined);
    const rows = await kit.sql("ganglion_owner", "SELECT FROM proxy.credentials WHERE vault_id = $1", [
      other,
    ]);
    assert.equal(rows.length, 0);
    assert.equal((await refusal(vaults.credentials.list(other))).status, 404);
  });

  it("validates what goes to an MCP server, and nothing else", async () => {
    const vaultId = await makeVault();
    const { id } = await vaults.credentials.create(vaultId, { auth: variable() });
    const other = vaults.credentials.mcpOAuthValidate(id, { vault_id: vaultId });
    assert.equal((await refusal(other)).status, 400);
    const bearerId = (await vaults.credentials.create(vaultId, { auth: bearer() })).id;
    await vaults.credentials.archive(bearerId, { vault_id: vaultId });
    const found = await vaults.credentials.mcpOAuthValidate(bearerId, { vault_id: vaultId });
    assert.deepEqual(
      { ...found, validated_at: "" },
      {
        ...{
          type: "vault_credential_validation",
          credential_id: bearerId,
          vault_id: vaultId,
          validated_at: "",
        },
        ...{ has_refresh_token: false, status: "invalid", mcp_probe: null, refresh: null },
      },
    );
  });

  it("says that it is not known when a server may not be tried", async () => {
    const vaultId = await makeVault();
    const { id } = await vaults.credentials.create(vaultId, { auth: bearer("http://127.0.0.1:9/mcp") });
    const found = await vaults.credentials.mcpOAuthValidate(id, { vault_id: vaultId });
    assert.equal(found.status, "unknown");
    assert.deepEqual(found.mcp_probe, { method: "initialize", http_response: null });
    assert.equal(found.refresh, null);
  });

  it("shows a vault to its own workspace only", async () => {
    const { vault } = await (await kit.vaults()).createVault({
      ...{ requestId: "", displayName: "theirs", metadata: {}, workspaceId: "wrkspc_b", isDecoy: false },
    });
    const id = vault?.id ?? "";
    for (const work of [
      () => vaults.retrieve(id),
      () => vaults.update(id, { display_name: "mine" }),
      () => vaults.archive(id),
      () => vaults.delete(id),
      () => vaults.credentials.list(id),
      () => vaults.credentials.create(id, { auth: bearer() }),
      () => vaults.archive("vlt_system_a"),
    ]) {
      assert.equal((await refusal(work())).status, 404);
    }
  });

  it("returns, logs and stores no secret anywhere outside Vault [A117]", () => rest.assertKeptSecret(45));
});
