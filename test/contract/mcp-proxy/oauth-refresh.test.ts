import assert from "node:assert/strict";
import { startOauthServer, type TestOauthServer } from "../../kit/oauth-server.ts";
import type { RunningService } from "../../kit/start-service.ts";
import {
  bindVault,
  GREETING,
  oauthSession,
  past,
  recordsOf,
  storedAt,
  storeOauth,
  textOf,
  unnamedReads,
  whoami,
} from "./oauth-kit.ts";
import { briefly, failureOf, ProxyKit } from "./proxy-kit.ts";

const OPERATION = "oauth.refresh";

describe("OAuth tokens in mcp-proxy, against a real authorization server", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let server: TestOauthServer;
  let other: RunningService;

  before(async () => {
    server = await startOauthServer();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(server.issuer).host });
    other = await kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
  });

  after(async () => {
    await other?.stop();
    await kit?.stop();
    await server?.stop();
  });

  /** Grants that were asked for since. */
  const grantsSince = async (before: string[]) => (await server.grants()).slice(before.length);

  it("go to the MCP server as they are while they are good", async () => {
    const session = await oauthSession(kit, server, { expiresInMs: 3_600_000 });
    const before = await server.grants();
    assert.equal(textOf(await whoami(kit, session)), GREETING);
    assert.deepEqual(await grantsSince(before), []);
    assert.deepEqual(await recordsOf(kit, OPERATION, session.sessionId), []);
  });

  for (const client of ["public-client", "basic-client", "post-client"] as const) {
    it(`are renewed when they have expired, as ${client}, by a request of its own in the log [A066]`, async () => {
      const options = { client, expiresInMs: 1500, scope: "mcp", resource: server.url } as const;
      const session = await oauthSession(kit, server, options);
      const first = await storedAt(kit, session.credential);
      const { length } = await server.journal.entries();
      await past(session.expiresAt);
      assert.equal(textOf(await whoami(kit, session)), GREETING);

      const asked = (await server.journal.entries()).slice(length).filter(({ kind }) => kind === "token");
      const authentication = client.split("-")[0]?.replace("public", "none");
      assert.deepEqual(
        asked.map(({ grant, authentication: how, scope, resource, status }) => [
          grant,
          how,
          scope,
          resource,
          status,
        ]),
        [["refresh_token", authentication, "mcp", server.url, 200]],
      );
      const second = await storedAt(kit, session.credential);
      assert.equal(second.version, first.version + 1);
      assert.notEqual(second.document.secret, first.document.secret);
      assert.notEqual(second.document.refresh_token, first.document.refresh_token);
      assert.equal(second.document.client_secret, first.document.client_secret);
      assert.ok(Date.parse(second.document.expires_at ?? "") > Date.now() + 3_000_000);

      const records = await recordsOf(kit, OPERATION, session.sessionId);
      assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
      const [decision, dispatch, outcome] = records;
      assert.equal(decision?.destination, server.issuer);
      assert.equal(decision?.target, "POST /token");
      assert.equal(decision?.caller, "spiffe://ganglion.local/harness/harness-1");
      assert.equal(decision?.tokenId, session.tokenId);
      assert.equal(dispatch?.peerAddress, "127.0.0.1");
      assert.equal(dispatch?.credentialId, session.credential.id);
      assert.equal(dispatch?.credentialVersion, BigInt(first.version));
      assert.notEqual(dispatch?.vaultRequestId, "");
      assert.equal(outcome?.status, 200);
      // The server is one that is listed for plain HTTP, and the log says so.
      assert.deepEqual([outcome?.tlsVersion, outcome?.peerSpkiSha256], ["none", ""]);
      const { credential: shown } = await (await kit.vaults()).getCredential({
        vaultId: session.vaultId,
        credentialId: session.credential.id,
      });
      assert.ok(shown?.auth?.$case === "mcpOauth");
      assert.equal(
        Number(shown.auth.value.expiresAt?.seconds),
        Math.floor(Date.parse(second.document.expires_at ?? "") / 1000),
      );
      const text = JSON.stringify([records, shown], (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      for (const secret of Object.values(second.document).filter(
        (one) => one !== second.document.expires_at,
      )) {
        assert.ok(!text.includes(secret));
        assert.ok(!kit.service.output().includes(secret));
      }
    });
  }

  it("are renewed once for 50 calls at their end, over two replicas [A156] [B105]", async () => {
    const vaultId = await kit.makeVault();
    const { credential, expiresAt } = await storeOauth(kit, server, vaultId, { expiresInMs: 3000 });
    const sessions = await Promise.all([1, 2, 3, 4, 5].map(() => bindVault(kit, vaultId, server.url)));
    const before = await server.grants();
    const first = await storedAt(kit, credential);
    await past(expiresAt);
    const calls = Array.from({ length: 50 }, (_, i) =>
      whoami(
        kit,
        sessions[i % sessions.length] as (typeof sessions)[0],
        (i % 2 ? other : kit.service).listening.addr,
      ),
    );
    const answers = await Promise.all(calls);
    assert.deepEqual(
      (await server.journal.entries()).filter(({ kind }) => kind === "failed"),
      [],
    );
    for (const call of answers) assert.equal(textOf(call), GREETING);
    assert.deepEqual(await grantsSince(before), ["refresh_token 200"]);
    assert.equal((await storedAt(kit, credential)).version, first.version + 1);
    const all = await Promise.all(sessions.map(({ sessionId }) => recordsOf(kit, OPERATION, sessionId)));
    // A replica that came second may have asked only to find that there was a newer version.
    const dispatched = all.flat().filter((one) => briefly([one])[0] === "dispatch");
    assert.equal(dispatched.length, 1);
    assert.deepEqual(await kit.sql("ganglion_owner", "SELECT * FROM proxy.oauth_renewals"), []);
  });

  it("are renewed after a 401 and the call is made again, as a request of its own", async () => {
    const session = await oauthSession(kit, server, { expiresInMs: 3_600_000 });
    await server.set({ refuse_old: "1" });
    await past(Math.ceil(Date.now() / 1000) * 1000);
    assert.equal(textOf(await whoami(kit, session)), GREETING);
    assert.deepEqual(briefly(await kit.records(session.sessionId)), [
      ...["decision allow", "dispatch", "outcome upstream_unauthorized"],
      ...["decision allow", "dispatch", "outcome ok"],
      ...["decision allow", "dispatch", "outcome ok"],
    ]);
    // And the list of its tools likewise, without a second renewal.
    const before = await server.grants();
    const tools = await (await kit.mcp()).listTools(
      { mcpServerName: "demo" },
      { metadata: { "ganglion-session-token": session.token } },
    );
    assert.deepEqual(
      tools.tools.map(({ name }) => name),
      ["whoami"],
    );
    assert.deepEqual(await grantsSince(before), []);
  });

  it("that are refused at the token endpoint end the call with CRED_REFRESH_FAILED, and are not asked for at each call", async () => {
    const session = await oauthSession(kit, server, {
      expiresInMs: 1500,
      tokens: { access_token: "no-such-access-token", refresh_token: "no-such-refresh-token" },
    });
    await past(session.expiresAt);
    const before = await server.grants();
    const failure = await failureOf(whoami(kit, session));
    assert.equal(failure.reason, "CRED_REFRESH_FAILED");
    assert.equal(failure.code, "FAILED_PRECONDITION");
    assert.deepEqual(failure.metadata, { upstream_status: "400", oauth_error: "invalid_grant" });
    assert.equal((await failureOf(whoami(kit, session))).reason, "CRED_REFRESH_FAILED");
    assert.deepEqual(await grantsSince(before), ["refresh_token 400"]);
    assert.deepEqual(briefly(await recordsOf(kit, OPERATION, session.sessionId)), [
      "decision allow",
      "dispatch",
      "outcome refused",
    ]);
    // The MCP server was sent nothing.
    assert.deepEqual(briefly(await recordsOf(kit, "mcp_call_tool", session.sessionId)), [
      ...["decision allow", "outcome cred_refresh_failed"],
      ...["decision allow", "outcome cred_refresh_failed"],
    ]);
  });

  it("without a refresh token go as they are, and a refusal is UPSTREAM_UNAUTHORIZED", async () => {
    const session = await oauthSession(kit, server, {
      expiresInMs: 1500,
      canRefresh: false,
      tokens: { access_token: "no-such-access-token", refresh_token: "" },
    });
    await past(session.expiresAt);
    assert.equal((await failureOf(whoami(kit, session))).reason, "UPSTREAM_UNAUTHORIZED");
    assert.deepEqual(await recordsOf(kit, OPERATION, session.sessionId), []);
  });

  for (const [name, tokenEndpoint, reason] of [
    ["a metadata address", "http://169.254.169.254/token", "DEST_NOT_ALLOWED"],
    ["a metadata address over TLS", "https://169.254.169.254/token", "DEST_NOT_ALLOWED"],
    ["a private host", "https://10.0.0.7/token", "DEST_NOT_ALLOWED"],
    ["loopback under another name", "https://localhost:9/token", "DEST_NOT_ALLOWED"],
  ] as const) {
    it(`are not renewed at ${name}: one denial, nothing read, nothing sent [B108] [B109] [A035]`, async () => {
      const session = await oauthSession(kit, server, { expiresInMs: 1500, tokenEndpoint });
      await past(session.expiresAt);
      const failure = await failureOf(whoami(kit, session));
      assert.deepEqual([failure.code, failure.reason], ["PERMISSION_DENIED", reason]);
      const records = await recordsOf(kit, OPERATION, session.sessionId);
      assert.deepEqual(briefly(records), [`decision deny ${reason}`]);
      assert.equal(records[0]?.vaultRequestId, "");
    });
  }

  it("were read at Vault in requests that records name, all of them", async () => {
    assert.deepEqual(await unnamedReads(kit), []);
  });
});
