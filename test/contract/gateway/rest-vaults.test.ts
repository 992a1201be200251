import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import Anthropic from "@anthropic-ai/sdk";
import { ProxyKit } from "../mcp-proxy/proxy-kit.ts";
import { type GatewayUnderTest, playApiKeys, startGateway } from "./gateway-kit.ts";

const KEY = "gk-vaults-0123456789";
const SERVER = "https://mcp.example.test/mcp";
const ENDPOINT = "https://id.example.test/token";

describe("vaults over REST, with the official SDK", () => {
  let kit: ProxyKit;
  let mesh: GatewayUnderTest;
  let vaults: Anthropic["beta"]["vaults"];
  /** Every secret that a test sent: none may come back, be logged or be stored in the database. */
  const sent: string[] = [];
  const seen: string[] = [];

  before(async function () {
    this.timeout(120_000);
    kit = await ProxyKit.start();
    mesh = await startGateway([playApiKeys(KEY)], { ca: kit.ca, address: kit.service.listening.addr });
    const watched: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      const text = await response.text();
      seen.push(text, JSON.stringify([...response.headers]));
      const body = response.status === 204 ? null : text;
      return new Response(body, { status: response.status, headers: response.headers });
    };
    vaults = new Anthropic({ apiKey: KEY, baseURL: mesh.rest, fetch: watched }).beta.vaults;
  });

  after(async () => {
    await mesh?.stop();
    await kit?.stop();
  });

  const secret = () => {
    const text = `cnry-${randomBytes(20).toString("hex")}`;
    sent.push(text);
    return text;
  };
  const makeVault = async () => (await vaults.create({ display_name: "of a test" })).id;
  const bearer = (url = SERVER) => ({ type: "static_bearer" as const, mcp_server_url: url, token: secret() });
  const oauth = () => ({
    type: "mcp_oauth" as const,
    mcp_server_url: SERVER,
    access_token: secret(),
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    refresh: {
      client_id: "client-1",
      refresh_token: secret(),
      token_endpoint: ENDPOINT,
      token_endpoint_auth: { type: "client_secret_post" as const, client_secret: secret() },
      scope: "read write",
      resource: "https://mcp.example.test",
    },
  });
  const variable = () => ({
    type: "environment_variable" as const,
    secret_name: "SERVICE_TOKEN",
    secret_value: secret(),
    networking: {
      type: "limited" as const,
      allowed_hosts: ["api.example.test", "*.example.org", "192.0.2.7"],
    },
  });
  const stored = async (vaultId: string, id: string) => {
    const path = `ganglion/data/vaults/${vaultId}/${id}`;
    const { body, status } = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
    return status === 200 ? (body.data as { data: Record<string, string> }).data : undefined;
  };
  const refusal = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => assert.fail("it was not refused"),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof Anthropic.APIError, String(error));
    return error;
  };

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

  const limited = (...hosts: string[]) => ({ networking: { type: "limited", allowed_hosts: hosts } });
  const bad: [string, () => object, RegExp][] = [
    ["no auth", () => ({}), /auth/],
    ["an unknown type", () => ({ auth: { type: "basic" } }), /auth\.type/],
    ["an unknown field", () => ({ auth: { ...bearer(), colour: "red" } }), /auth\.colour/],
    ["no token", () => ({ auth: { ...bearer(), token: undefined } }), /auth\.token/],
    ["a token that is no text", () => ({ auth: { ...bearer(), token: 12345678 } }), /auth\.token/],
    ["a token with a line feed", () => ({ auth: { ...bearer(), token: `${secret()}\n` } }), /auth\.token/],
    ["a URL with a user name", () => ({ auth: bearer("https://u:p@mcp.test/") }), /mcp_server_url/],
    ["an expiry in the past", () => ({ auth: { ...oauth(), expires_at: "2020-01-01T00:00:00Z" } }), /future/],
    ["an expiry that is no time", () => ({ auth: { ...oauth(), expires_at: "soon" } }), /RFC 3339/],
    [
      "a public client with a secret",
      () => {
        const auth = oauth();
        const how = { type: "none", client_secret: secret() };
        return { auth: { ...auth, refresh: { ...auth.refresh, token_endpoint_auth: how } } };
      },
      /client_secret/,
    ],
    [
      "no refresh token",
      () => ({ auth: { ...oauth(), refresh: { ...oauth().refresh, refresh_token: null } } }),
      /refresh_token/,
    ],
    ["no networking", () => ({ auth: { ...variable(), networking: undefined } }), /networking/],
    ["networking null", () => ({ auth: { ...variable(), networking: null } }), /networking/],
    [
      "17 hosts",
      () => ({ auth: { ...variable(), ...limited(...Array.from({ length: 17 }, (_, i) => `h${i}.test`)) } }),
      /allowed_hosts/,
    ],
    ["both places off", () => ({ auth: { ...variable(), injection_location: {} } }), /injection_location/],
    ["places null", () => ({ auth: { ...variable(), injection_location: null } }), /injection_location/],
    [
      "the name of a variable that programs obey",
      () => ({ auth: { ...variable(), secret_name: "LD_PRELOAD" } }),
      /secret_name/,
    ],
    ["a name with a sign in it", () => ({ auth: { ...variable(), secret_name: "A-B" } }), /secret_name/],
    ...[
      "https://a.test",
      "a.test:443",
      "a.test/x",
      "[::1]",
      "::1",
      "*",
      "a.*.test",
      "127.1",
      "0x7f.1",
      "a b.test",
      "",
    ].map((host): [string, () => object, RegExp] => [
      `the host ${JSON.stringify(host)}`,
      () => ({ auth: { ...variable(), ...limited(host) } }),
      /allowed_hosts/,
    ]),
  ];
  for (const [what, body, message] of bad) {
    it(`refuses ${what} with 400 and repeats no secret`, async () => {
      const vaultId = await makeVault();
      const error = await refusal(vaults.credentials.create(vaultId, body() as never));
      assert.equal(error.status, 400);
      assert.equal(error.type, "invalid_request_error");
      assert.match(error.message, message);
      assert.deepEqual((await vaults.credentials.list(vaultId)).data, []);
    });
  }

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
    const before = seen.length;
    for (const auth of [bearer("HTTPS://mcp.example.test:443/mcp/"), oauth()]) {
      const error = await refusal(vaults.credentials.create(vaultId, { auth }));
      assert.equal(error.status, 409);
      assert.equal(error.type, "conflict_error");
    }
    assert.equal(seen.length - before, 4, "two answers, each with its headers");
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
      ...{ requestId: "", displayName: "theirs", metadata: {}, workspaceId: "wrkspc_b" },
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

  it("returns, logs and stores no secret anywhere outside Vault [A117]", async () => {
    assert.ok(sent.length > 50);
    const rows = await kit.sql(
      "ganglion_owner",
      "SELECT row_to_json(c)::text AS text FROM proxy.credentials c UNION ALL SELECT row_to_json(v)::text FROM proxy.vaults v",
    );
    const places = {
      answers: seen.join("\n"),
      logs: JSON.stringify([mesh.gateway.lines(), kit.service.lines()]),
      database: rows.map(({ text }: { text: string }) => text).join("\n"),
    };
    for (const [place, text] of Object.entries(places)) {
      assert.ok(text.length > 100, `${place} were looked at`);
      const found = sent.filter(
        (one) => text.includes(one) || text.includes(Buffer.from(one).toString("hex")),
      );
      assert.deepEqual(found, [], place);
    }
  });
});
