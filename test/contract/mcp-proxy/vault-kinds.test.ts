import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { sealPurposes } from "../../../services/common/seal/seal-purposes.ts";
import {
  type CreateCredentialRequest,
  type Credential,
  TokenEndpointAuth,
  type UpdateCredentialRequest,
} from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import { until } from "../../kit/until.ts";
import { becomesActive, SLOW_MS } from "../vault/kit/test-vault.ts";
import { failureOf, NO_CHANGE, ProxyKit } from "./proxy-kit.ts";

const SERVER = "https://mcp.example.test/mcp";
const ENDPOINT = "https://id.example.test/token";

type Auth = NonNullable<CreateCredentialRequest["auth"]>;

describe("VaultService: kinds, changes and removals", function () {
  this.timeout(SLOW_MS);
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;
  let vaultId: string;

  before(async () => {
    upstream = await startMcpUpstream();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host });
  });
  beforeEach(async () => {
    vaultId = await kit.makeVault();
  });
  after(async () => {
    await kit?.stop();
    await upstream?.stop();
  });

  const newSecret = () => `cnry_${randomBytes(20).toString("hex")}`;
  const oauth = (url = SERVER, tokenEndpoint = ENDPOINT): Auth => ({
    $case: "mcpOauth",
    value: {
      mcpServerUrl: url,
      expiresAt: undefined,
      refresh: {
        ...{ clientId: "client-1", tokenEndpoint, scope: "", resource: "" },
        tokenEndpointAuth: TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_BASIC,
      },
    },
  });
  const variable = (name: string): Auth => ({
    $case: "environmentVariable",
    value: {
      secretName: name,
      networking: { scope: { $case: "limited", value: { allowedHosts: ["API.example.test"] } } },
      injectionLocation: undefined,
    },
  });
  const seal = (secret: string, of: { vaultId: string; purpose: string; destination: string }) =>
    kit.seal(secret, of.vaultId, of.destination, of.purpose);
  const request = async (auth: Auth, more: Partial<CreateCredentialRequest> = {}) => {
    const purposes = sealPurposes(vaultId, auth);
    const isOauth = auth.$case === "mcpOauth" && auth.value.refresh !== undefined;
    return {
      ...{ requestId: "", vaultId, displayName: "", metadata: {}, auth },
      secret: await seal(newSecret(), purposes.secret),
      refreshToken: isOauth ? await seal(newSecret(), purposes.refreshToken) : undefined,
      clientSecret: isOauth ? await seal(newSecret(), purposes.clientSecret) : undefined,
      ...more,
    };
  };
  const create = async (auth: Auth, more: Partial<CreateCredentialRequest> = {}) =>
    (await (await kit.vaults()).createCredential(await request(auth, more))).credential as Credential;
  const atVault = async (credentialId: string, of = vaultId) => {
    const path = `ganglion/data/vaults/${of}/${credentialId}`;
    const { body, status } = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
    return status === 200 ? (body.data as { data: Record<string, string> }).data : undefined;
  };
  const rowsOf = (of = vaultId) =>
    kit.sql("ganglion_owner", "SELECT * FROM proxy.credentials WHERE vault_id = $1", [of]);

  it("is idempotent by request id for OAuth tokens too", async () => {
    const vaults = await kit.vaults();
    const asked = await request(oauth(), { requestId: randomUUID() });
    const made = await vaults.createCredential(asked);
    assert.deepEqual(await vaults.createCredential(asked), made);
    const refreshToken = await seal(newSecret(), sealPurposes(vaultId, oauth()).refreshToken);
    const other = { ...asked, refreshToken };
    assert.equal((await failureOf(vaults.createCredential(other))).reason, "ID_REUSED");
  });

  it("refuses secrets that were sealed for another field or token endpoint", async () => {
    const vaults = await kit.vaults();
    const asked = await request(oauth());
    const swapped = { ...asked, refreshToken: asked.clientSecret, clientSecret: asked.refreshToken };
    assert.equal((await failureOf(vaults.createCredential(swapped))).reason, "SEAL_INVALID");
    const steered = { ...asked, auth: oauth(SERVER, "https://evil.test/token") };
    const error = await failureOf(vaults.createCredential(steered));
    assert.equal(error.reason, "SEAL_INVALID");
    assert.equal(error.metadata.field, "refresh_token");
    assert.deepEqual(await rowsOf(), []);
  });

  it("wants exactly the secrets that the settings take", async () => {
    const vaults = await kit.vaults();
    const asked = await request(oauth());
    const cases: [Partial<CreateCredentialRequest>, string][] = [
      [{ refreshToken: undefined }, "refresh_token"],
      [{ clientSecret: undefined }, "client_secret"],
      [{ secret: undefined }, "secret"],
    ];
    for (const [more, field] of cases) {
      const error = await failureOf(vaults.createCredential({ ...asked, ...more }));
      assert.deepEqual([error.reason, error.violations[0]?.field], ["INVALID_FIELD", field]);
    }
    const extra = await request(variable("A"), { clientSecret: asked.clientSecret });
    assert.equal((await failureOf(vaults.createCredential(extra))).violations[0]?.field, "client_secret");
  });

  it("keeps hosts in lower case and lists records of all kinds", async () => {
    const made = [await create(oauth()), await create(variable("SERVICE_TOKEN"))];
    const asked = { vaultId, pageSize: 0, pageToken: "", includeArchived: false };
    const { credentials } = await (await kit.vaults()).listCredentials(asked);
    assert.deepEqual(credentials, made.reverse());
    const auth = credentials.find((one) => one.auth?.$case === "environmentVariable")?.auth;
    assert.ok(auth?.$case === "environmentVariable");
    const { scope } = auth.value.networking ?? {};
    assert.deepEqual(scope?.$case === "limited" && scope.value.allowedHosts, ["api.example.test"]);
    const { header, body } = auth.value.injectionLocation ?? {};
    assert.deepEqual([header, body], [true, true]);
  });

  it("refuses changes that do not fit the kind, and changes nothing", async () => {
    const vaults = await kit.vaults();
    const bearer = await create({ $case: "staticBearer", value: { mcpServerUrl: SERVER } });
    const before = await atVault(bearer.id);
    const sealed = await seal(newSecret(), sealPurposes(vaultId, oauth()).refreshToken);
    const cases = [
      { refreshToken: sealed },
      { clientSecret: sealed },
      { auth: { $case: "mcpOauth" as const, value: { expiresAt: undefined, scope: "x" } } },
      {
        auth: {
          $case: "environmentVariable" as const,
          value: { networking: undefined, injectionLocation: { header: true } },
        },
      },
    ];
    for (const change of cases) {
      const asked = { ...NO_CHANGE, vaultId, credentialId: bearer.id, ...change };
      assert.equal((await failureOf(vaults.updateCredential(asked))).reason, "INVALID_FIELD");
    }
    assert.deepEqual(await atVault(bearer.id), before);
    assert.deepEqual((await vaults.getCredential({ vaultId, credentialId: bearer.id })).credential, bearer);
  });

  it("changes a credential for two at once without losing either change", async () => {
    const vaults = await kit.vaults();
    const { id } = await create(oauth());
    const purposes = sealPurposes(vaultId, oauth());
    const [secret, clientSecret] = [newSecret(), newSecret()];
    const changes: Partial<UpdateCredentialRequest>[] = [
      { secret: await seal(secret, purposes.secret) },
      { clientSecret: await seal(clientSecret, purposes.clientSecret) },
      { metadataSet: { a: "1" } },
      { metadataSet: { b: "2" } },
      { auth: { $case: "mcpOauth" as const, value: { expiresAt: undefined, scope: "read" } } },
      { displayName: "named" },
    ];
    await Promise.all(
      changes.map((change) =>
        vaults.updateCredential({ ...NO_CHANGE, vaultId, credentialId: id, ...change }),
      ),
    );
    const document = await atVault(id);
    assert.equal(document?.secret, secret);
    assert.equal(document?.client_secret, clientSecret);
    const { credential } = await vaults.getCredential({ vaultId, credentialId: id });
    assert.deepEqual(credential?.metadata, { a: "1", b: "2" });
    assert.equal(credential?.displayName, "named");
    assert.ok(credential?.auth?.$case === "mcpOauth");
    assert.equal(credential.auth.value.refresh?.scope, "read");
  });

  it("takes 16 pairs of metadata after a change and no more", async () => {
    const vaults = await kit.vaults();
    const { id } = await create(variable("A"), { metadata: { one: "1", two: "2" } });
    const many = Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`k${index}`, "v"]));
    const change = { ...NO_CHANGE, vaultId, credentialId: id, metadataSet: many };
    const before = await atVault(id);
    const secret = await seal(newSecret(), sealPurposes(vaultId, variable("A")).secret);
    const error = await failureOf(vaults.updateCredential({ ...change, secret }));
    assert.equal(error.reason, "INVALID_FIELD");
    assert.deepEqual(await atVault(id), before, "a change that is refused leaves the secret as it was");
    const fit = await vaults.updateCredential({ ...change, metadataRemove: ["one"] });
    assert.equal(Object.keys(fit.credential?.metadata ?? {}).length, 16);
    assert.equal(
      (
        await failureOf(
          vaults.updateVault({ vaultId, metadataSet: { ...many, x: "", y: "" }, metadataRemove: [] }),
        )
      ).reason,
      "INVALID_FIELD",
    );
  });

  it("does not make a good row of one that was changed past the proxy", async () => {
    const vaults = await kit.vaults();
    const { id } = await create(variable("A"));
    const evil = JSON.stringify({
      networking: { type: "unrestricted" },
      injection_location: { header: true, body: true },
    });
    await kit.sql("ganglion_owner", "UPDATE proxy.credentials SET config = $2 WHERE credential_id = $1", [
      id,
      evil,
    ]);
    const named = { ...NO_CHANGE, vaultId, credentialId: id, displayName: "x" };
    const error = await failureOf(vaults.updateCredential(named));
    assert.equal(error.code, "DATA_LOSS");
    assert.equal(error.reason, "ROW_TAMPERED");
  });

  it("sends an OAuth access token to its MCP server as a bearer token, until it is archived", async () => {
    const session = await kit.bound({ servers: [{ name: "demo", url: upstream.url }] });
    vaultId = session.vaultId;
    const auth: Auth = {
      $case: "mcpOauth",
      value: { mcpServerUrl: upstream.url, expiresAt: undefined, refresh: undefined },
    };
    const secret = await seal(upstream.token, sealPurposes(vaultId, auth).secret);
    const { id } = await create(auth, { secret });
    const list = async () =>
      (await kit.mcp()).listTools(
        { mcpServerName: "demo" },
        { metadata: { "ganglion-session-token": session.token } },
      );
    assert.ok((await list()).tools.length > 0);
    await (await kit.vaults()).archiveCredential({ vaultId, credentialId: id });
    assert.equal((await failureOf(list())).reason, "CRED_MISSING");
  });

  it("archives a vault while one is being stored in it, and leaves no secret", async () => {
    const vaults = await kit.vaults();
    const requests = await Promise.all(["A", "B", "C", "D"].map((name) => request(variable(name))));
    const [archived, ...results] = await Promise.allSettled([
      vaults.archiveVault({ vaultId }),
      ...requests.map((asked) => vaults.createCredential(asked)),
    ]);
    assert.equal(archived.status, "fulfilled");
    for (const result of results) {
      if (result.status === "rejected") assert.equal(result.reason.reason, "VAULT_ARCHIVED");
    }
    for (const row of await rowsOf()) {
      assert.ok(row.archived_at);
      assert.equal(await atVault(row.credential_id), undefined);
    }
    assert.equal(
      (await failureOf(vaults.createCredential(await request(variable("E"))))).reason,
      "VAULT_ARCHIVED",
    );
    const bind = {
      ...{
        sessionId: `sesn_${randomBytes(8).toString("hex")}`,
        workspaceId: "wrkspc_default",
        vaultIds: [vaultId],
      },
      ...{
        mcpServers: [],
        models: [],
        replacesMcpServers: false,
        networking: undefined,
        gitRepositories: [],
      },
    };
    assert.equal((await failureOf((await kit.bindings()).bind(bind))).reason, "VAULT_ARCHIVED");
  });

  it("deletes with Vault sealed: gone at once, and the secret as soon as Vault can [A116]", async () => {
    const vaults = await kit.vaults();
    const { id } = await create(variable("A"));
    const [doomed, kept] = [vaultId, await kit.makeVault()];
    await kit.vault.http.call("PUT", "sys/seal", { token: kit.rootToken });
    try {
      await vaults.deleteVault({ vaultId: doomed });
      assert.equal(
        (await failureOf(vaults.getVault({ vaultId: doomed, workspaceId: "" }))).reason,
        "VAULT_NOT_FOUND",
      );
      assert.equal((await failureOf(vaults.deleteVault({ vaultId: doomed }))).code, "NOT_FOUND");
      assert.equal((await rowsOf(doomed)).length, 1);
    } finally {
      await kit.vault.http.call("PUT", "sys/unseal", { body: { key: kit.unsealKey } });
      await becomesActive(kit.vault.http);
    }
    // The next start works off what is left, as does every one of the proxies every 15 s.
    await kit.restartProxy();
    await until(async () => (await rowsOf(doomed)).length === 0, "the next start to work off what is left");
    assert.equal(await atVault(id, doomed), undefined);
    assert.ok((await (await kit.vaults()).getVault({ vaultId: kept, workspaceId: "" })).vault);
  });

  it("archives with Vault sealed: UNAVAILABLE, out of use already, and done when it is asked again", async () => {
    const vaults = await kit.vaults();
    const { id } = await create(variable("A"));
    await kit.vault.http.call("PUT", "sys/seal", { token: kit.rootToken });
    try {
      const error = await failureOf(vaults.archiveCredential({ vaultId, credentialId: id }));
      assert.equal(error.reason, "VAULT_UNAVAILABLE");
      assert.ok((await vaults.getCredential({ vaultId, credentialId: id })).credential?.archiveTime);
    } finally {
      await kit.vault.http.call("PUT", "sys/unseal", { body: { key: kit.unsealKey } });
      await becomesActive(kit.vault.http);
    }
    await vaults.archiveCredential({ vaultId, credentialId: id });
    assert.equal(await atVault(id), undefined);
  });

  it("leaves the system vault where it is", async () => {
    const vaults = await kit.vaults();
    const { vault } = await vaults.getSystemVault({ workspaceId: "" });
    const named = { vaultId: vault?.id ?? "" };
    for (const work of [() => vaults.archiveVault(named), () => vaults.deleteVault(named)]) {
      const error = await failureOf(work());
      assert.deepEqual([error.code, error.reason], ["FAILED_PRECONDITION", "VAULT_IS_SYSTEM"]);
    }
  });

  for (const service of ["harness", "sandbox", "session"]) {
    it(`lets a ${service} certificate change and remove nothing [A110]`, async () => {
      const { id } = await create(variable("A"));
      const vaults = await kit.vaults(service);
      const named = { vaultId, credentialId: id };
      for (const work of [
        () => vaults.updateVault({ vaultId, metadataSet: {}, metadataRemove: [] }),
        () => vaults.archiveVault({ vaultId }),
        () => vaults.deleteVault({ vaultId }),
        () => vaults.getCredential(named),
        () => vaults.updateCredential({ ...NO_CHANGE, ...named }),
        () => vaults.deleteCredential(named),
        () => vaults.validateCredential(named),
      ]) {
        assert.equal((await failureOf(work())).reason, "ROLE_NOT_ALLOWED");
      }
    });
  }
});
