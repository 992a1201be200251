import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  type Credential,
  RefreshStatus,
  CredentialVerdict as Verdict,
} from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { startOauthServer, type TestOauthServer } from "../../kit/oauth-server.ts";
import { HostileMcp } from "./hostile-mcp.ts";
import { past, recordsOf, storedAt, storeOauth, unnamedReads } from "./oauth-kit.ts";
import { briefly, ProxyKit } from "./proxy-kit.ts";

describe("ValidateCredential", function () {
  this.timeout(120_000);
  let kit: ProxyKit;
  let server: TestOauthServer;
  let hostile: HostileMcp;
  /** A host that is allowed, where nobody listens any more. */
  let goneHost: string;

  before(async () => {
    [server, hostile] = await Promise.all([startOauthServer(), HostileMcp.start()]);
    const gone = await HostileMcp.start();
    goneHost = gone.host;
    await gone.stop();
    const hosts = [new URL(server.issuer).host, hostile.host, goneHost].join(",");
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: hosts });
  });

  after(async () => {
    await kit?.stop();
    await server?.stop();
    await hostile?.stop();
  });

  const validate = async ({ vaultId, id: credentialId }: Pick<Credential, "vaultId" | "id">) => {
    const { validation } = await (await kit.vaults()).validateCredential({ vaultId, credentialId });
    if (!validation) throw new Error("no validation came back");
    return validation;
  };
  const stored = async (options: Parameters<typeof storeOauth>[3]) =>
    (await storeOauth(kit, server, await kit.makeVault(), options)).credential;
  const bearer = async (url: string, secret: string): Promise<Credential> => {
    const vaultId = await kit.makeVault([{ url, secret }]);
    const request = { vaultId, pageSize: 0, pageToken: "", includeArchived: false };
    return (await (await kit.vaults()).listCredentials(request)).credentials[0] as Credential;
  };
  const bad = (refresh = "no-such-refresh-token") => ({
    tokens: { access_token: "no-such-access-token", refresh_token: refresh },
  });

  it("finds a good token valid, by one request in the audit log, read with a Vault token of its own", async () => {
    const credential = await stored({});
    const { verdict, hasRefreshToken, mcpProbe, refresh } = await validate(credential);
    assert.equal(verdict, Verdict.CREDENTIAL_VERDICT_VALID);
    assert.equal(hasRefreshToken, true);
    assert.deepEqual([mcpProbe, refresh], [undefined, undefined]);
    const records = (await recordsOf(kit, "oauth.validate")).filter(
      (one) => one.credentialId === credential.id,
    );
    assert.deepEqual(briefly(records), ["decision allow", "dispatch", "outcome ok"]);
    assert.equal(records[0]?.caller, "spiffe://ganglion.local/operator/operator-1");
    assert.notEqual(records[1]?.vaultRequestId, "");
  });

  it("renews a token that the server refuses, and tries the new one", async () => {
    const credential = await stored({});
    await server.set({ refuse_old: "1" });
    await past(Math.ceil(Date.now() / 1000) * 1000);
    const { verdict, refresh, mcpProbe } = await validate(credential);
    assert.equal(verdict, Verdict.CREDENTIAL_VERDICT_VALID);
    assert.equal(refresh?.status, RefreshStatus.REFRESH_STATUS_SUCCEEDED);
    assert.deepEqual([refresh?.httpResponse, mcpProbe], [undefined, undefined]);
    assert.equal((await storedAt(kit, credential)).version, 2);
  });

  it("says what refused a token that cannot be renewed", async () => {
    const { verdict, mcpProbe, refresh } = await validate(await stored(bad()));
    assert.equal(verdict, Verdict.CREDENTIAL_VERDICT_INVALID);
    assert.equal(mcpProbe?.method, "initialize");
    assert.equal(mcpProbe?.httpResponse?.statusCode, 401);
    assert.equal(mcpProbe?.httpResponse?.body, "a token is needed");
    assert.equal(refresh?.status, RefreshStatus.REFRESH_STATUS_FAILED);
    assert.equal(refresh?.httpResponse?.statusCode, 400);
    assert.match(refresh?.httpResponse?.body ?? "", /invalid_grant/);
  });

  it("says when there is no refresh token, and when its endpoint cannot be reached", async () => {
    const none = await validate(await stored({ ...bad(), canRefresh: false }));
    assert.equal(none.verdict, Verdict.CREDENTIAL_VERDICT_INVALID);
    assert.equal(none.hasRefreshToken, false);
    assert.equal(none.refresh?.status, RefreshStatus.REFRESH_STATUS_NO_REFRESH_TOKEN);
    const gone = await validate(await stored({ ...bad(), tokenEndpoint: `http://${goneHost}/token` }));
    assert.equal(gone.verdict, Verdict.CREDENTIAL_VERDICT_UNKNOWN);
    assert.equal(gone.refresh?.status, RefreshStatus.REFRESH_STATUS_CONNECT_ERROR);
  });

  it("shows answers without any secret that was sent, and cut [A058]", async () => {
    const secret = `cnry_${randomBytes(24).toString("hex")}`;
    hostile.misbehave = (_rpc, request, response) => {
      const given = String(request.headers.authorization);
      const forms = [given, Buffer.from(given).toString("base64"), Buffer.from(given).toString("hex")];
      response.writeHead(403, { "content-type": "text/plain" }).end(`${forms.join("\n")}${"x".repeat(9000)}`);
      return true;
    };
    const { verdict, mcpProbe, refresh } = await validate(await bearer(hostile.url, secret));
    assert.equal(verdict, Verdict.CREDENTIAL_VERDICT_INVALID);
    assert.equal(refresh, undefined);
    const { body = "", bodyTruncated } = mcpProbe?.httpResponse ?? {};
    assert.equal(bodyTruncated, true);
    assert.ok(body.length <= 4096);
    assert.match(body, /\[REDACTED:credential\]/);
    const seen = [
      secret,
      Buffer.from(secret).toString("hex"),
      Buffer.from(secret).toString("base64").slice(4, 40),
    ];
    for (const form of seen) assert.ok(!body.includes(form));
  });

  it("does not judge a credential by a server's own trouble", async () => {
    hostile.misbehave = (_rpc, _request, response) => {
      response.writeHead(503).end("later");
      return true;
    };
    const { verdict, mcpProbe } = await validate(await bearer(hostile.url, "a-bearer-token"));
    assert.equal(verdict, Verdict.CREDENTIAL_VERDICT_UNKNOWN);
    assert.equal(mcpProbe?.httpResponse?.statusCode, 503);
    hostile.misbehave = () => false;
    const again = await validate(await bearer(hostile.url, "a-bearer-token"));
    assert.equal(again.verdict, Verdict.CREDENTIAL_VERDICT_VALID);
  });

  it("reads at Vault in requests that records name, all of them", async () => {
    assert.deepEqual(await unnamedReads(kit), []);
  });
});
