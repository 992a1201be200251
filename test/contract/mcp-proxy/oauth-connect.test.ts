import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VaultServiceService } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { startOauthServer, type TestOauthServer } from "../../kit/oauth-server.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { walkThrough } from "../../kit/walk-through.ts";
import { HostileAuthorization } from "./hostile-authorization.ts";
import { bindVault, GREETING, past, recordsOf, storedAt, textOf, whoami } from "./oauth-kit.ts";
import { briefly, failureOf, ProxyKit, WORKSPACE } from "./proxy-kit.ts";

const REDIRECT = "http://127.0.0.1:48123/callback";

describe("connecting a person with OAuth", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let server: TestOauthServer;
  let hostile: HostileAuthorization;
  let other: RunningService;

  before(async () => {
    [server, hostile] = await Promise.all([startOauthServer(), HostileAuthorization.start()]);
    const hosts = [new URL(server.issuer).host, hostile.host].join(",");
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: hosts });
    other = await kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
  });

  after(async () => {
    await other?.stop();
    await kit?.stop();
    await server?.stop();
    await hostile?.stop();
  });

  beforeEach(() => hostile.reset());

  const begin = async (vaultId: string, mcpServerUrl: string, more: object = {}) =>
    (await kit.vaults()).startAuthorization({
      ...{ vaultId, mcpServerUrl, displayName: "mine", metadata: { a: "b" }, redirectUri: REDIRECT },
      ...{ scope: "", clientId: "", tokenEndpointAuth: 0, clientSecret: undefined },
      ...more,
    });
  /** What has been written since. */
  const since = async (before: number) => {
    const all = [];
    for (const step of ["discovery", "register", "redeem"])
      all.push(...(await recordsOf(kit, `oauth.${step}`)));
    return all
      .filter(({ sequence }) => sequence > BigInt(before))
      .sort((a, b) => Number(a.sequence - b.sequence));
  };
  const head = async () =>
    Number((await kit.sql("ganglion_owner", "SELECT sequence FROM proxy.audit_head"))[0].sequence);

  it("goes from nothing but the server's address to a credential that works, over two replicas", async () => {
    const vaultId = await kit.makeVault();
    const before = await head();
    const { authorizationUrl, state, issuer } = await begin(vaultId, server.url);
    assert.equal(issuer, server.issuer);
    const asked = new URL(authorizationUrl).searchParams;
    assert.equal(asked.get("code_challenge_method"), "S256");
    assert.equal(asked.get("resource"), server.url);
    assert.equal(asked.get("state"), state);
    assert.ok(asked.get("scope")?.split(" ").includes("offline_access"));
    const answer = await walkThrough(authorizationUrl, REDIRECT);
    assert.equal(answer.get("state"), state);
    const finish = { state, code: answer.get("code") ?? "", iss: answer.get("iss") ?? "" };
    assert.equal(finish.iss, server.issuer);
    const elsewhere = await kit.client(VaultServiceService, "operator", "operator-1", other.listening.addr);
    const { credential } = await elsewhere.finishAuthorization(finish);
    assert.ok(credential?.auth?.$case === "mcpOauth");
    assert.equal(credential.displayName, "mine");
    const { refresh } = credential.auth.value;
    assert.equal(refresh?.tokenEndpoint, `${server.issuer}/token`);
    assert.equal(refresh?.resource, server.url);
    const { document } = await storedAt(kit, credential);
    assert.ok(document.secret && document.refresh_token && document.expires_at);

    const session = await bindVault(kit, vaultId, server.url);
    assert.equal(textOf(await whoami(kit, session)), GREETING);
    // And it can be renewed as it was stored.
    await server.set({ refuse_old: "1" });
    await past(Math.ceil(Date.now() / 1000) * 1000);
    assert.equal(textOf(await whoami(kit, session)), GREETING);

    const records = await since(before);
    assert.deepEqual(
      records.filter(({ kind }) => kind === 2).map(({ operation, target }) => `${operation} ${target}`),
      [
        "oauth.discovery POST /mcp",
        "oauth.discovery GET /.well-known/oauth-protected-resource/mcp",
        "oauth.discovery GET /.well-known/oauth-authorization-server",
        "oauth.register POST /reg",
        "oauth.redeem POST /token",
      ],
    );
    assert.ok(records.every(({ caller }) => caller.startsWith("spiffe://ganglion.local/operator/")));
    // An operator is of no workspace: the vault's is the one whose bound judges, at each step.
    assert.deepEqual(new Set(records.map(({ workspaceId }) => workspaceId)), new Set([WORKSPACE]));
    // It can be finished once.
    assert.equal(
      (await failureOf((await kit.vaults()).finishAuthorization(finish))).reason,
      "AUTHORIZATION_NOT_FOUND",
    );
    // And a second one for the same server has no place.
    assert.equal((await failureOf(begin(vaultId, server.url))).reason, "CREDENTIAL_EXISTS");
    for (const secret of [document.secret, document.refresh_token, finish.code]) {
      assert.ok(!kit.service.output().includes(secret) && !other.output().includes(secret));
    }
  });

  for (const [client, tokenEndpointAuth] of [
    ["public-client", 0],
    ["basic-client", 2],
    ["post-client", 3],
  ] as const) {
    it(`takes a client that was registered by hand: ${client}`, async () => {
      const vaultId = await kit.makeVault();
      const clientSecret =
        tokenEndpointAuth === 0
          ? undefined
          : await kit.seal(server.clientSecret, vaultId, server.url, "mcp_oauth.client_secret");
      const begun = await begin(vaultId, server.url, { clientId: client, tokenEndpointAuth, clientSecret });
      const answer = await walkThrough(begun.authorizationUrl, REDIRECT);
      const finish = { state: begun.state, code: answer.get("code") ?? "", iss: answer.get("iss") ?? "" };
      const { credential } = await (await kit.vaults()).finishAuthorization(finish);
      assert.ok(credential?.auth?.$case === "mcpOauth");
      assert.equal(credential.auth.value.refresh?.clientId, client);
      assert.equal(
        (await storedAt(kit, credential)).document.client_secret,
        clientSecret && server.clientSecret,
      );
    });
  }

  for (const [what, iss] of [
    ["wrong", "https://evil.test"],
    ["missing", ""],
  ] as const) {
    it(`does not redeem a code whose iss is ${what}, and asks the token endpoint nothing [A048]`, async () => {
      const vaultId = await kit.makeVault();
      const { state } = await begin(vaultId, hostile.url);
      hostile.seen.length = 0;
      const before = await head();
      const failure = await failureOf(
        (await kit.vaults()).finishAuthorization({ state, code: "a-code", iss }),
      );
      assert.deepEqual([failure.code, failure.reason], ["PERMISSION_DENIED", "ISSUER_MISMATCH"]);
      assert.deepEqual(hostile.seen, []);
      assert.deepEqual(briefly(await since(before)), ["decision deny ISSUER_MISMATCH"]);
      // The mix-up has cost the attempt: the right answer comes too late.
      const again = (await kit.vaults()).finishAuthorization({ state, code: "a-code", iss: hostile.issuer });
      assert.equal((await failureOf(again)).reason, "AUTHORIZATION_NOT_FOUND");
    });
  }

  it("refuses metadata whose issuer is not the one that was asked, before anything else of it is used [A048]", async () => {
    hostile.metadata = { issuer: "https://honest.test" };
    const before = await head();
    const failure = await failureOf(begin(await kit.makeVault(), hostile.url));
    assert.deepEqual([failure.code, failure.reason], ["PERMISSION_DENIED", "ISSUER_MISMATCH"]);
    assert.ok(!hostile.seen.some((line) => line.includes("/register") || line.includes("/token")));
    assert.equal(briefly(await since(before)).at(-1), "decision deny ISSUER_MISMATCH");
  });

  it("refuses a resource's metadata that speaks of another server", async () => {
    hostile.resource = { resource: "https://honest.test/mcp" };
    const failure = await failureOf(begin(await kit.makeVault(), hostile.url));
    assert.deepEqual([failure.code, failure.reason], ["PERMISSION_DENIED", "RESOURCE_MISMATCH"]);
  });

  const inside = "http://169.254.169.254/";
  const cases: [string, Partial<Pick<HostileAuthorization, "challenge" | "resource" | "metadata">>][] = [
    ["the challenge", { challenge: `Bearer resource_metadata="${inside}"` }],
    ["the resource's metadata", { resource: { authorization_servers: ["https://169.254.169.254"] } }],
    ["authorization_endpoint", { metadata: { authorization_endpoint: "https://10.0.0.7/a" } }],
    ["token_endpoint", { metadata: { token_endpoint: "https://10.0.0.7/t" } }],
    ["registration_endpoint", { metadata: { registration_endpoint: "https://127.0.0.1:9/r" } }],
    ["a name that resolves to loopback", { metadata: { token_endpoint: "https://localhost/t" } }],
  ];
  for (const [where, lies] of cases) {
    it(`goes nowhere inside that ${where} names: one denial, of purpose discovery or registration [A035] [B108] [B109]`, async () => {
      Object.assign(hostile, lies);
      const before = await head();
      const failure = await failureOf(begin(await kit.makeVault(), hostile.url));
      assert.deepEqual([failure.code, failure.reason], ["PERMISSION_DENIED", "DEST_NOT_ALLOWED"]);
      const denied = (await since(before)).filter(({ effect }) => effect === "deny");
      assert.deepEqual(briefly(denied), ["decision deny DEST_NOT_ALLOWED"]);
      assert.match(denied[0]?.operation ?? "", /^oauth\.(discovery|register)$/);
      assert.ok(!hostile.seen.includes("POST /token"));
    });
  }

  it("follows no redirect, neither in discovery nor at the token endpoint [B108] [A017]", async () => {
    hostile.redirects = { "/.well-known/oauth-authorization-server": inside };
    assert.equal((await failureOf(begin(await kit.makeVault(), hostile.url))).reason, "UPSTREAM_REDIRECT");
    hostile.reset();
    const { state } = await begin(await kit.makeVault(), hostile.url);
    hostile.redirects = { "/token": `${hostile.issuer}/elsewhere` };
    const before = await head();
    const finish = (await kit.vaults()).finishAuthorization({ state, code: "a-code", iss: hostile.issuer });
    assert.equal((await failureOf(finish)).reason, "UPSTREAM_REDIRECT");
    assert.ok(!hostile.seen.some((line) => line.includes("elsewhere")));
    assert.deepEqual(briefly(await since(before)), [
      "decision allow",
      "dispatch",
      "outcome redirect_refused",
    ]);
  });

  it("hands no address on that means something to a shell, and opens none [A050]", async () => {
    const folder = mkdtempSync(join(tmpdir(), "ganglion-a050-"));
    const marker = join(folder, "p");
    for (const authorization_endpoint of [
      `http://x$(touch ${marker})`,
      `${hostile.issuer}/authorize?$(touch\${IFS}${marker})`,
      `${hostile.issuer}/\`touch ${marker}\``,
      `file:///etc/passwd`,
      `javascript:alert(1)`,
    ]) {
      hostile.metadata = { authorization_endpoint };
      const before = await head();
      const failure = await failureOf(begin(await kit.makeVault(), hostile.url));
      assert.equal(failure.reason, "URL_NOT_CANONICAL");
      assert.equal(briefly(await since(before)).at(-1), "decision deny URL_NOT_CANONICAL");
    }
    assert.ok(!existsSync(marker));
    rmSync(folder, { recursive: true });
  });

  it("needs PKCE with S256, metadata, and a way to get a client", async () => {
    for (const [lie, missing] of [
      [{ code_challenge_methods_supported: ["plain"] }, "code_challenge_methods_supported: S256"],
      [{ code_challenge_methods_supported: undefined }, "code_challenge_methods_supported: S256"],
      [{ token_endpoint: undefined }, "token_endpoint"],
      [{ registration_endpoint: undefined }, "registration_endpoint"],
    ] as const) {
      hostile.metadata = lie;
      const failure = await failureOf(begin(await kit.makeVault(), hostile.url));
      assert.deepEqual([failure.reason, failure.metadata.missing], ["OAUTH_NOT_SUPPORTED", missing]);
    }
  });

  it("says with the server's word when a code is refused, and nothing of its text", async () => {
    const { state } = await begin(await kit.makeVault(), hostile.url);
    hostile.token = { status: 400, body: '{"error":"invalid_grant","error_description":"SECRET-TEXT"}' };
    const finish = (await kit.vaults()).finishAuthorization({ state, code: "a-code", iss: hostile.issuer });
    const failure = await failureOf(finish);
    assert.equal(failure.reason, "AUTHORIZATION_REFUSED");
    assert.deepEqual(failure.metadata, { upstream_status: "400", oauth_error: "invalid_grant" });
    assert.ok(!JSON.stringify(failure).includes("SECRET-TEXT"));
  });

  it("brings the code to this machine only", async () => {
    const vaultId = await kit.makeVault();
    for (const redirectUri of [
      "https://evil.test/callback",
      "http://10.0.0.7/callback",
      "http://127.0.0.1.evil.test/callback",
      "http://127.0.0.1:1/callback?x=1",
    ]) {
      assert.equal((await failureOf(begin(vaultId, hostile.url, { redirectUri }))).reason, "INVALID_FIELD");
    }
    assert.deepEqual(hostile.seen, []);
  });
});
